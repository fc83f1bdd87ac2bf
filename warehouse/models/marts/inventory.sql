-- One row per GPU, by its UUID or serial number, and stay at a place: a GPU that was swapped leaves its node.
-- A place whose listings name no GPU has one row without. One GPU in two places at once cannot be: both are kept, and
-- say so.
with contradicted as (
    select distinct
        stays.cluster,
        stays.node,
        stays.slot,
        stays.valid_from
    from staging.fleet__gpu_stays as stays
    inner join staging.fleet__gpu_stays as rivals
        on
            stays.cluster = rivals.cluster
            and stays.gpu = rivals.gpu
            and stays.valid_from < coalesce(rivals.valid_to, 'infinity'::timestamptz)
            and rivals.valid_from < coalesce(stays.valid_to, 'infinity'::timestamptz)
    where (stays.node, stays.slot) <> (rivals.node, rivals.slot)
)

select
    stays.cluster,
    stays.node,
    stays.gpu_index,
    stays.device,
    stays.uuid,
    stays.serial,
    stays.model,
    places.rack,
    places.pod,
    places.switch,
    stays.valid_from,
    stays.valid_to,
    contradicted.valid_from is not null as is_contradicted,
    stays.record_id
from staging.fleet__gpu_stays as stays
left join staging.fleet__places as places
    on stays.cluster = places.cluster and stays.node = places.node
left join contradicted
    on
        stays.cluster = contradicted.cluster
        and stays.node = contradicted.node
        and stays.slot = contradicted.slot
        and stays.valid_from = contradicted.valid_from
