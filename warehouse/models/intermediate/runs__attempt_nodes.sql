-- One row per node of an attempt of a tracked run, with how long events on the node belong to that attempt.
-- After its end, an event belongs to the last tracked attempt that held the node until another one starts there.
with held as (
    select
        cluster,
        run_id,
        record_id,
        unnest(node_names) as node,
        started_at,
        ended_at,
        observed_until,
        -- An attempt without length must not find its own start.
        observed_until + if(started_at = observed_until, interval 1 microsecond, interval 0 second) as free_from
    from intermediate.runs__attempts
    where node_names is not null
),

starts as (
    select distinct
        cluster,
        node,
        started_at as next_started_at
    from held
)

select
    held.* exclude (free_from),
    starts.next_started_at as owned_until
from held
asof left join starts
    on
        held.cluster = starts.cluster
        and held.node = starts.node
        and held.free_from <= starts.next_started_at
