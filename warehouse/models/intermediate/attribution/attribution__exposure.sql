-- One row per cluster: node-seconds in which nothing was interrupted, the exposure of background rates.
-- Only whole days count, see staging.scheduler__span.
-- Slice: cluster
-- Dirty: select windows.cluster from delta.intermediate__attribution__event_windows as windows
-- Dirty: inner join staging.scheduler__span as spans using (cluster) where windows.opens_at < spans.rates_until
-- Dirty: group by windows.cluster, interruption_id, node, opens_at, closes_at having sum(windows._times) <> 0
-- Dirty: union all select cluster from delta.staging__scheduler__span group by cluster
-- Dirty: having count(*) = 1 or count(distinct (first_at, least(last_at, rates_until), rates_until, nodes)) > 1
with inside as (
    select
        windows.cluster,
        sum(
            epoch(least(windows.closes_at, spans.rates_until))::bigint - epoch(windows.opens_at)::bigint
        ) as node_seconds
    from intermediate.attribution__event_windows as windows
    inner join staging.scheduler__span as spans
        on windows.cluster = spans.cluster and windows.opens_at < spans.rates_until
    group by windows.cluster
),

observed as (
    select
        cluster,
        nodes * greatest(epoch(least(last_at, rates_until))::bigint - epoch(first_at)::bigint, 0) as node_seconds
    from staging.scheduler__span
)

select
    observed.cluster,
    observed.node_seconds,
    greatest(observed.node_seconds - coalesce(inside.node_seconds, 0), 0) as quiet_node_seconds
from observed
left join inside
    on observed.cluster = inside.cluster
