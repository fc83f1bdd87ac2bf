-- One row per interruption and node that the run's next attempt did without, where it kept most of the others.
-- Whoever restarts a run leaves out the node they blame. How often a node is left out by chance is counted over the
-- attempts of the cluster, with a prior of one node in two hundred that counts for twenty.
with rates as (
    select
        absent.cluster,
        (sum(len(absent.left_out)) + 0.1) / (sum(absent.nodes) + 20) as chance
    from intermediate.attribution__absent as absent
    inner join staging.scheduler__span as spans
        on absent.cluster = spans.cluster and absent.ended_at < spans.rates_until
    group by absent.cluster
),

priors as (
    select
        spans.cluster,
        coalesce(rates.chance, 0.005) as chance
    from staging.scheduler__span as spans
    left join rates
        on spans.cluster = rates.cluster
)

select
    absent.interruption_id,
    'scheduler state' as kind,
    'node_left_out' as evidence_class,
    absent.cluster,
    unnest(absent.left_out) as node,
    'node' as device_kind,
    null::varchar as device,
    null::bigint as code,
    absent.next_started_at as first_at,
    absent.next_started_at as last_at,
    1 as events,
    priors.chance,
    absent.next_record_id as record_id,
    'the next attempt does without this node' as text
from intermediate.attribution__absent as absent
inner join priors
    on absent.cluster = priors.cluster
where len(absent.left_out) between 1 and least(16, absent.nodes // 2)
