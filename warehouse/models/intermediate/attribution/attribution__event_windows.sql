-- One row per interruption and node of its attempt: the window in which hardware events on that node belong to it.
-- While the attempt held the node, to the last microsecond of the End's second (schedulers keep no fractions), and
-- after it until another tracked attempt starts there; longer where the run's next attempt does without the node, since
-- what is found on it then is what it was left out for.
-- Slice: interruption_id
-- Whole: intermediate.runs__attempt_nodes
-- Dirty: select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from delta.intermediate__attribution__absent
-- Dirty: union all select interruption_id from intermediate.attribution__stops
-- Dirty: where record_id in (select record_id from delta.intermediate__runs__attempt_nodes)
with left_out as (
    select
        interruption_id,
        unnest(left_out) as node
    from intermediate.attribution__absent
    where len(left_out) between 1 and least(16, nodes // 2)
)

select
    stops.interruption_id,
    nodes.cluster,
    nodes.node,
    stops.opens_at,
    greatest(
        stops.ended_at + interval 999999 microsecond,
        least(
            stops.ended_at + to_seconds(if(left_out.node is null, attribution.after_seconds, timing.left_out_seconds)),
            coalesce(nodes.owned_until - interval 1 microsecond, timestamptz 'infinity')
        )
    ) as closes_at
from intermediate.attribution__stops as stops
inner join intermediate.runs__attempt_nodes as nodes
    on stops.record_id = nodes.record_id
left join left_out
    on stops.interruption_id = left_out.interruption_id and nodes.node = left_out.node
cross join settings.attribution as attribution
cross join reference.evidence_timing as timing
