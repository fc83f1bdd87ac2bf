-- One row per interruption and node of its attempt: the window in which hardware events on that node belong to it.
-- While the attempt held the node, to the last microsecond of the End's second (schedulers keep no fractions), and
-- after it until another tracked attempt starts there (`owned_until`); longer where the run's next attempt does without
-- the node, since what is found on it then is what it was left out for.
-- Slice: interruption_id
-- Whole: intermediate.runs__attempt_nodes
-- Dirty: select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from delta.intermediate__attribution__absent
-- Dirty: union all select interruption_id from intermediate.attribution__stops
-- Dirty: where record_id in (select record_id from delta.intermediate__runs__attempt_nodes)
-- Dirty: union all select windows.interruption_id from intermediate.attribution__event_windows as windows
-- Dirty: inner join (
-- Dirty: select cluster, node, started_at from delta.intermediate__runs__attempt_nodes
-- Dirty: group by all having sum(_times) <> 0
-- Dirty: ) as changed using (cluster, node)
-- Dirty: where windows.free_from <= changed.started_at and windows.owned_until >= changed.started_at
-- Dirty: and windows.owned_until >= (select min(started_at) from delta.intermediate__runs__attempt_nodes)
-- Dirty: union all select interruption_id from intermediate.attribution__event_windows as windows
-- Dirty: semi join delta.intermediate__runs__attempt_nodes as changed
-- Dirty: on windows.cluster = changed.cluster and windows.node = changed.node
-- Dirty: and windows.free_from <= changed.started_at
-- Dirty: where windows.owned_until is null
with left_out as (
    select
        interruption_id,
        unnest(left_out) as node
    from intermediate.attribution__absent
    where len(left_out) between 1 and least(16, nodes // 2)
),

held as (
    select
        stops.interruption_id,
        nodes.cluster,
        nodes.node,
        stops.opens_at,
        stops.ended_at,
        -- An attempt without length must not find its own start.
        stops.ended_at
        + if(stops.started_at = stops.ended_at, interval 1 microsecond, interval 0 second) as free_from
    from intermediate.attribution__stops as stops
    inner join intermediate.runs__attempt_nodes as nodes
        on stops.record_id = nodes.record_id
),

starts as (
    select
        cluster,
        node,
        started_at
    from intermediate.runs__attempt_nodes
    where started_at >= (select min(held.free_from) from held)
)

select
    held.interruption_id,
    held.cluster,
    held.node,
    held.opens_at,
    greatest(
        held.ended_at + interval 999999 microsecond,
        least(
            held.ended_at + to_seconds(if(left_out.node is null, attribution.after_seconds, timing.left_out_seconds)),
            coalesce(starts.started_at - interval 1 microsecond, timestamptz 'infinity')
        )
    ) as closes_at,
    held.free_from,
    starts.started_at as owned_until
from held
asof left join starts
    on
        held.cluster = starts.cluster
        and held.node = starts.node
        and held.free_from <= starts.started_at
left join left_out
    on held.interruption_id = left_out.interruption_id and held.node = left_out.node
cross join settings.attribution as attribution
cross join reference.evidence_timing as timing
-- stored together, so that who asks for some interruptions reads little of the rest
order by held.interruption_id
