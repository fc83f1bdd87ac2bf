-- One row per node: seconds out of service, overlapping intervals counted once, and how often it was taken out.
with ordered as (
    select
        cluster,
        node,
        started_at,
        observed_until,
        max(observed_until) over (
            partition by cluster, node
            order by started_at, observed_until
            rows between unbounded preceding and 1 preceding
        ) as out_until
    from staging.scheduler__node_states
    where is_out
),

islands as (
    select
        *,
        sum((out_until is null or started_at > out_until)::int) over (
            partition by cluster, node
            order by started_at, observed_until
        ) as island
    from ordered
),

outages as (
    select
        cluster,
        node,
        island,
        epoch(max(observed_until))::bigint - epoch(min(started_at))::bigint as seconds
    from islands
    group by cluster, node, island
)

select
    cluster,
    node,
    count(*) as outages,
    sum(seconds)::bigint as out_seconds
from outages
group by cluster, node
