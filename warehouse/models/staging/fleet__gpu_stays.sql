-- One row per slot of a node and period in which, by all that was told, the same GPU held it under the same index.
-- A slot is a PCI address, or an index where no address is told: indices move up when a GPU is gone, addresses do not.
-- A GPU leaves its slot when it is seen in another, or another one in its slot; missing from a listing it has not left:
-- a GPU off the bus is not listed.
with listed as (
    select
        *,
        coalesce(device, concat('index ', gpu_index)) as slot
    from staging.fleet__statements
    where kind = 'gpu'
),

-- A statement without UUID and serial number says nothing of a slot where others have one.
named as (
    select *
    from listed
    qualify gpu is not null or count(gpu) over (partition by cluster, node, slot) = 0
),

statements as (
    select *
    from named
    qualify
        row_number() over (
            partition by cluster, node, slot, seen_at
            order by
                gpu asc nulls last,
                gpu_index asc,
                record_id asc
        ) = 1
),

sightings as (
    select
        cluster,
        gpu,
        seen_at,
        lead(seen_at) over (partition by cluster, gpu order by seen_at) as next_seen_at
    from statements
    where gpu is not null
    group by cluster, gpu, seen_at
),

moves as (
    select
        statements.cluster,
        statements.gpu,
        statements.node,
        statements.slot,
        sightings.next_seen_at as seen_at
    from statements
    inner join sightings
        on
            statements.cluster = sightings.cluster
            and statements.gpu = sightings.gpu
            and statements.seen_at = sightings.seen_at
    anti join statements as again
        on
            statements.cluster = again.cluster
            and statements.gpu = again.gpu
            and sightings.next_seen_at = again.seen_at
            and statements.node = again.node
            and statements.slot = again.slot
    where sightings.next_seen_at is not null
),

told as (
    select
        cluster,
        node,
        slot,
        seen_at,
        false as is_leaving,
        gpu,
        gpu_index,
        device,
        uuid,
        serial,
        model,
        record_id
    from statements
    union all
    select
        cluster,
        node,
        slot,
        seen_at,
        true as is_leaving,
        gpu,
        null,
        null,
        null,
        null,
        null,
        null
    from moves
),

-- A GPU leaves a slot only while it holds it: another one may have been put there before.
steps as (
    select *
    from told
    qualify
        not is_leaving
        or gpu = last_value(if(is_leaving, null, gpu) ignore nulls) over (
            partition by cluster, node, slot
            order by
                seen_at asc,
                is_leaving desc,
                gpu asc
            rows unbounded preceding
        )
),

begun as (
    select
        *,
        (
            not is_leaving
            and coalesce(
                lag(is_leaving) over steps_of_slot
                or lag(gpu) over steps_of_slot is distinct from gpu
                or lag(gpu_index) over steps_of_slot is distinct from gpu_index,
                true
            )
        )::int as is_new
    from steps
    window
        steps_of_slot as (
            partition by cluster, node, slot
            order by
                seen_at asc,
                is_leaving desc,
                gpu asc
        )
),

numbered as (
    select
        *,
        sum(is_new) over (
            partition by cluster, node, slot
            order by
                seen_at asc,
                is_leaving desc,
                gpu asc
            rows unbounded preceding
        ) as stay
    from begun
),

stays as (
    select
        cluster,
        node,
        slot,
        stay,
        min(gpu) as gpu,
        min(gpu_index) as gpu_index,
        min(device) as device,
        min(uuid) as uuid,
        min(serial) as serial,
        min(model) as model,
        min(seen_at) filter (where not is_leaving) as valid_from,
        max(seen_at) filter (where not is_leaving) as last_seen_at,
        min(seen_at) filter (where is_leaving) as left_at,
        arg_min(record_id, (seen_at, record_id)) as record_id
    from numbered
    group by cluster, node, slot, stay
)

select
    cluster,
    node,
    slot,
    gpu,
    gpu_index,
    device,
    uuid,
    serial,
    model,
    valid_from,
    least(left_at, lead(valid_from) over (partition by cluster, node, slot order by stay)) as valid_to,
    last_seen_at,
    row_number() over (partition by cluster, node, slot order by stay) = 1 as is_slots_first,
    gpu is null or row_number() over (partition by cluster, gpu order by valid_from, node, slot) = 1 as is_gpus_first,
    record_id
from stays
