-- One row per cluster, node and GPU index: the GPU that holds it by the latest statement.
select
    cluster,
    node,
    gpu_index,
    device,
    uuid,
    serial,
    model,
    valid_from,
    record_id
from staging.fleet__gpu_stays
where valid_to is null
qualify
    row_number() over (
        partition by cluster, node, gpu_index
        order by
            last_seen_at desc,
            valid_from desc,
            slot asc
    ) = 1
