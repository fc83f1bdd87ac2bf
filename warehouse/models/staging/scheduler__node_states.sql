-- One row per node and interval out of normal service; a closed record beats an open one of the same begin.
-- `observed_until` is the end, or the latest collection that still saw the interval open. A compound state such as
-- MIXED+DRAIN is out where any part of it is. `outage_started_at` is the begin of the unbroken time out that holds it.
-- Slice: cluster, node
with ranked as (
    select
        *,
        row_number() over (
            partition by cluster, node, started_at
            order by
                (ended_at is not null) desc,
                collected_at desc,
                record_id asc,
                set_by asc,  -- known before unknown; a record's id leaves out who set it
                set_by_uid asc,
                state_raw asc,
                flags asc
        ) as record_rank,
        max(collected_at) over (partition by cluster, node, started_at) as last_collected_at
    from staging.scheduler__told_states
    where node is not null
),

states as (
    select
        *,
        coalesce(ended_at, last_collected_at) as observed_until,
        regexp_matches(coalesce(state_raw, state, ''), '(?i)DOWN|DRAIN|DRNG|FAIL|MAINT|ERROR|REBOOT|POWER') as is_out
    from ranked
    where record_rank = 1
),

reached as (
    select
        *,
        max(if(is_out, observed_until, null)) over (
            partition by cluster, node
            order by started_at
            rows between unbounded preceding and 1 preceding
        ) as out_until
    from states
),

outages as (
    select
        *,
        -- a gap of a minute, while a node is being handled, does not end an outage
        sum((out_until is null or started_at > out_until + interval 1 minute)::int) over (
            partition by cluster, node
            order by started_at
        ) as outage
    from reached
)

select
    cluster,
    node,
    state,
    state_raw,
    started_at,
    ended_at,
    observed_until,
    ended_at is null as is_open,
    is_out,
    if(is_out, min(started_at) over (partition by cluster, node, outage), null) as outage_started_at,
    reason,
    set_by,
    set_by_uid,
    record_id,
    list_sort(list_distinct(coalesce(flags, []))) as flags
from outages
