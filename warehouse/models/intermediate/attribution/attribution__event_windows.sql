-- One row per interruption and node of its attempt: the window in which hardware events on that node belong to it.
-- While the attempt held the node, to the last microsecond of the End's second (schedulers keep no fractions), and
-- after it until another tracked attempt starts there.
select
    index.interruption_id,
    nodes.cluster,
    nodes.node,
    greatest(index.started_at, index.ended_at - to_seconds(attribution.before_seconds)) as opens_at,
    greatest(
        index.ended_at + interval 999999 microsecond,
        least(
            index.ended_at + to_seconds(attribution.after_seconds),
            coalesce(nodes.owned_until - interval 1 microsecond, timestamptz 'infinity')
        )
    ) as closes_at
from intermediate.interruptions__index as index
inner join intermediate.runs__attempt_nodes as nodes
    on index.record_id = nodes.record_id
cross join settings.attribution as attribution
