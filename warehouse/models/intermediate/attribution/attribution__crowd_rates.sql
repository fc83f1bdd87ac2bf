-- One row per cluster and class of hardware event that many nodes ever showed at once: how often, stops apart.
-- A server that does not answer for a minute is seen by hundreds of nodes, and stops nothing. A prior of one crowd in a
-- hundred days counts for ten days.
-- Slice: cluster
-- Dirty: select events.cluster from delta.intermediate__hardware__events as events
-- Dirty: inner join staging.scheduler__span as spans using (cluster) where events.occurred_at < spans.rates_until
-- Dirty: union all select stops.cluster from delta.intermediate__attribution__stops as stops
-- Dirty: inner join staging.scheduler__span as spans using (cluster)
-- Dirty: where stops.stopped_at <= spans.rates_until + interval 3 minute
-- Dirty: union all select cluster from delta.staging__scheduler__span group by cluster
-- Dirty: having count(*) = 1 or count(distinct (first_at, least(last_at, rates_until), rates_until, nodes)) > 1
with minutes as (
    select
        events.cluster,
        events.evidence_class,
        time_bucket(interval 1 minute, events.occurred_at) as minute_at
    from intermediate.hardware__events as events
    inner join staging.scheduler__span as spans
        on events.cluster = spans.cluster and events.occurred_at < spans.rates_until
    where not events.is_cleanup
    group by events.cluster, events.evidence_class, minute_at
    having count(distinct events.node) >= 3
),

begun as (
    select
        *,
        coalesce(
            minute_at > lag(minute_at) over (
                partition by cluster, evidence_class
                order by minute_at
            ) + interval 10 minute,
            true
        ) as is_new
    from minutes
),

stops as (
    select distinct
        cluster,
        stopped_at
    from intermediate.attribution__stops
),

apart as (
    select begun.*
    from begun
    asof left join stops
        on begun.cluster = stops.cluster and begun.minute_at - interval 3 minute <= stops.stopped_at
    where
        begun.is_new
        and (stops.stopped_at is null or stops.stopped_at > begun.minute_at + interval 3 minute)
)

select
    apart.cluster,
    apart.evidence_class,
    count(*) as crowds,
    (count(*) + 0.1) / (
        any_value(
            greatest(epoch(least(spans.last_at, spans.rates_until))::bigint - epoch(spans.first_at)::bigint, 0)
        ) + 864000
    ) as rate_per_second
from apart
inner join staging.scheduler__span as spans
    on apart.cluster = spans.cluster
group by apart.cluster, apart.evidence_class
