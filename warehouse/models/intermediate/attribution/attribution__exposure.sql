-- One row per cluster: node-seconds in which nothing was interrupted, the exposure of background rates.
with inside as (
    select
        cluster,
        sum(epoch(closes_at)::bigint - epoch(opens_at)::bigint) as node_seconds
    from intermediate.attribution__event_windows
    group by cluster
),

observed as (
    select
        cluster,
        nodes * greatest(epoch(last_at)::bigint - epoch(first_at)::bigint, 0) as node_seconds
    from staging.scheduler__span
)

select
    observed.cluster,
    observed.node_seconds,
    greatest(observed.node_seconds - coalesce(inside.node_seconds, 0), 0) as quiet_node_seconds
from observed
left join inside
    on observed.cluster = inside.cluster
