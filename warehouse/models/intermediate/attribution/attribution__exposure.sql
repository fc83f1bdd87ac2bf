-- One row per cluster: node-seconds in which nothing was interrupted, the exposure of background rates.
with windows as (
    select distinct
        interruption_id,
        cluster,
        node,
        opens_at,
        least(closes_at, coalesce(owned_until, closes_at)) as closes_at
    from intermediate.attribution__event_windows
),

inside as (
    select
        cluster,
        sum(epoch(closes_at)::bigint - epoch(opens_at)::bigint) as node_seconds
    from windows
    group by cluster
)

select
    span.cluster,
    span.nodes * greatest(epoch(span.last_at)::bigint - epoch(span.first_at)::bigint, 0) as node_seconds,
    greatest(
        span.nodes * greatest(epoch(span.last_at)::bigint - epoch(span.first_at)::bigint, 0)
        - coalesce(inside.node_seconds, 0),
        0
    ) as quiet_node_seconds
from staging.scheduler__span as span
left join inside
    on span.cluster = inside.cluster
