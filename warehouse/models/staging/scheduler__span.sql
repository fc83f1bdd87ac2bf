-- One row per cluster: first and last instant its records vouch for, and the nodes they name.
-- Rates of chance are taken over whole UTC days, `rates_until` the last one's end: what the newest hours bring changes
-- no weight of what was judged before, and an hour's build judges only what is new.
with instants as (
    select
        cluster,
        min(started_at) as first_at,
        max(observed_until) as last_at
    from staging.scheduler__attempts
    group by cluster
    union all
    select
        cluster,
        min(occurred_at),
        max(occurred_at)
    from staging.hardware__events
    group by cluster
    union all
    select
        cluster,
        min(started_at),
        max(coalesce(ended_at, started_at))
    from staging.scheduler__node_states
    group by cluster
),

named as (
    select
        cluster,
        node
    from staging.scheduler__nodes
    union
    select
        cluster,
        node
    from staging.hardware__events
    where node is not null
),

counted as (
    select
        cluster,
        count(*) as nodes
    from named
    group by cluster
)

select
    instants.cluster,
    min(instants.first_at) as first_at,
    max(instants.last_at) as last_at,
    if(
        max(instants.last_at) >= min(instants.first_at) + interval 2 day,
        date_trunc('day', max(instants.last_at)),
        max(instants.last_at) + interval 1 second
    ) as rates_until,
    coalesce(any_value(counted.nodes), 0) as nodes
from instants
left join counted
    on instants.cluster = counted.cluster
group by instants.cluster
