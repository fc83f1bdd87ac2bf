-- One row per interruption, node and 15-minute bucket its evidence window touches.
-- The bucket turns the range join of events with windows into an equi-join; see docs/decisions.md.
with windows as (
    select
        index.interruption_id,
        nodes.cluster,
        nodes.node,
        index.started_at,
        index.ended_at,
        greatest(
            index.started_at, index.ended_at - to_seconds(attribution.before_seconds)
        ) as opens_at,
        index.ended_at + to_seconds(attribution.after_seconds) as closes_at,
        nodes.owned_until
    from intermediate.interruptions__index as index
    inner join intermediate.runs__attempt_nodes as nodes
        on index.record_id = nodes.record_id
    cross join settings.attribution as attribution
)

select
    *,
    unnest(range(epoch(opens_at)::bigint // 900, epoch(closes_at)::bigint // 900 + 1)) as bucket
from windows
