-- One row per node and interval out of normal service; a closed record beats an open one of the same begin.
-- `observed_until` is the end, or the latest collection that still saw the interval open.
with ranked as (
    select
        *,
        row_number() over (
            partition by cluster, node, started_at
            order by
                (ended_at is not null) desc,
                collected_at desc,
                record_id asc
        ) as record_rank,
        max(collected_at) over (partition by cluster, node, started_at) as last_collected_at
    from lake.node_states
    where node is not null
)

select
    cluster,
    node,
    state,
    state_raw,
    started_at,
    ended_at,
    coalesce(ended_at, last_collected_at) as observed_until,
    ended_at is null as is_open,
    reason,
    set_by,
    set_by_uid,
    record_id,
    list_sort(list_distinct(coalesce(flags, []))) as flags
from ranked
where record_rank = 1
