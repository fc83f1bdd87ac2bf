-- One row per node, name that a log may give a GPU (PCI address, index, UUID) and period in which it means this one.
-- Before the first statement about a slot the index is what it says, and the GPU too, unless that was elsewhere.
with names as (
    select
        *,
        unnest(list_distinct([device, gpu_index::varchar, uuid])) as name
    from staging.fleet__gpu_stays
),

ranked as (
    select
        *,
        if(
            valid_from = min(valid_from) over (partition by cluster, node, name),
            timestamptz '-infinity',
            valid_from
        ) as from_at
    from names
    where name is not null
    qualify
        row_number() over (
            partition by cluster, node, name, valid_from
            order by
                last_seen_at desc,
                slot asc
        ) = 1
)

select
    cluster,
    node,
    name,
    from_at,
    coalesce(
        lead(from_at) over (partition by cluster, node, name order by from_at), timestamptz 'infinity'
    ) as until_at,
    gpu_index,
    uuid,
    if(is_slots_first and is_gpus_first, timestamptz '-infinity', valid_from) as uuid_from_at,
    coalesce(valid_to, timestamptz 'infinity') as uuid_until_at
from ranked
