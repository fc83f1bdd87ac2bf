-- One row per node: how long tracked runs and other jobs held it, how often it is blamed, and how long it was out.
-- Blame is for stops whose cause is confirmed or suspected hardware, not for a user's own. `blamed` counts incidents,
-- so that a crash loop on one node counts once; the rate is per 1,000 node-days that tracked runs held, with its exact
-- Poisson interval. Nodes without exposure have no rate.
with exposure as (
    select
        cluster,
        node,
        sum(attempts)::bigint as attempts,
        sum(job_seconds)::bigint as job_seconds,
        sum(tracked_seconds)::bigint as tracked_seconds
    from intermediate.nodes__exposure
    group by cluster, node
),

blame as (
    select
        cluster,
        culprit_node as node,
        count(*) as interruptions,
        count(distinct incident_id) as blamed,
        arg_max(cause, interrupted_at) as last_cause
    from marts.interruptions
    where culprit_node is not null and hardware <> 'no'
    group by cluster, culprit_node
),

faults as (
    select
        cluster,
        node,
        count(*) filter (where is_fatal) as fatal_faults,
        count(*) as faults
    from intermediate.hardware__faults
    group by cluster, node
),

named as (
    select
        cluster,
        node
    from exposure
    union
    select
        cluster,
        node
    from faults
    union
    select
        cluster,
        node
    from intermediate.nodes__days_out
)

select
    named.cluster,
    named.node,
    scheduled.node is not null as is_known_to_scheduler,
    coalesce(exposure.attempts, 0) as attempts,
    round(coalesce(exposure.tracked_seconds, 0) / 86400, 6) as exposure_days,
    round(coalesce(exposure.job_seconds, 0) / 86400, 6) as job_days,
    coalesce(blame.interruptions, 0) as blamed_interruptions,
    coalesce(blame.blamed, 0) as blamed,
    round(coalesce(blame.blamed, 0) * 86400000 / nullif(exposure.tracked_seconds, 0), 6) as blamed_per_1000_days,
    round(
        poisson_lower(coalesce(blame.blamed, 0)) * 86400000 / nullif(exposure.tracked_seconds, 0), 6
    ) as blamed_per_1000_days_lower,
    round(
        poisson_upper(coalesce(blame.blamed, 0)) * 86400000 / nullif(exposure.tracked_seconds, 0), 6
    ) as blamed_per_1000_days_upper,
    blame.last_cause,
    coalesce(faults.faults, 0) as faults,
    coalesce(faults.fatal_faults, 0) as fatal_faults,
    coalesce(days_out.outages, 0) as outages,
    round(coalesce(days_out.out_seconds, 0) / 86400, 6) as days_out,
    round(days_out.out_seconds / 3600 / nullif(days_out.outages, 0), 6) as mttr_hours,
    null::double as lemon_score,
    null::varchar as lemon_verdict
from named
left join exposure
    on named.cluster = exposure.cluster and named.node = exposure.node
left join blame
    on named.cluster = blame.cluster and named.node = blame.node
left join faults
    on named.cluster = faults.cluster and named.node = faults.node
left join intermediate.nodes__days_out as days_out
    on named.cluster = days_out.cluster and named.node = days_out.node
left join staging.scheduler__nodes as scheduled
    on named.cluster = scheduled.cluster and named.node = scheduled.node
