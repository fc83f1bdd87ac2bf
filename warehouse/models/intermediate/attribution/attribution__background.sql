-- One row per cluster and evidence class: how often it occurs on a node when nothing is interrupted.
-- A gamma-Poisson estimate: occurrences outside every evidence window over quiet node-seconds, joined with a documented
-- prior rate that counts as much exposure as reference.background_rates says, so that small fleets lean on it.
with occurrences as (
    select
        cluster,
        node,
        evidence_class,
        device,
        code,
        first_at,
        last_at,
        is_fatal
    from intermediate.hardware__faults
    union all
    select
        cluster,
        node,
        evidence_class,
        device,
        code,
        occurred_at as first_at,
        occurred_at as last_at,
        false as is_fatal
    from intermediate.hardware__events
    where not is_fault
    union all
    select
        cluster,
        node,
        evidence_class,
        null as device,
        null as code,
        started_at as first_at,
        started_at as last_at,
        false as is_fatal
    from intermediate.scheduler__node_states
),

-- A fatal fault just before a job ended there, tracked or not, is a cause at work, not background.
background as (
    select occurrences.*
    from occurrences
    inner join staging.scheduler__span as spans
        on occurrences.cluster = spans.cluster and occurrences.first_at < spans.rates_until
    cross join settings.attribution as attribution
    asof left join intermediate.nodes__failed_ends as failed_ends
        on
            occurrences.cluster = failed_ends.cluster
            and occurrences.node = failed_ends.node
            and occurrences.first_at - to_seconds(attribution.after_seconds) <= failed_ends.ended_at
    where
        not occurrences.is_fatal
        or failed_ends.ended_at is null
        or failed_ends.ended_at > occurrences.first_at + to_seconds(attribution.before_seconds)
),

quiet as (
    select
        occurrences.cluster,
        occurrences.evidence_class,
        count(*) as occurrences
    from background as occurrences
    anti join intermediate.attribution__candidates as candidates
        on
            occurrences.cluster = candidates.cluster
            and occurrences.node = candidates.node
            and occurrences.evidence_class = candidates.evidence_class
            and occurrences.device is not distinct from candidates.device
            and occurrences.code is not distinct from candidates.code
            and candidates.first_at between occurrences.first_at and occurrences.last_at
    group by occurrences.cluster, occurrences.evidence_class
),

classes as (
    select distinct
        cluster,
        evidence_class
    from intermediate.attribution__candidates
),

assumed as (
    select
        classes.cluster,
        classes.evidence_class,
        coalesce(own.rate_per_1000_node_days, fallback.rate_per_1000_node_days) / 86400000 as rate_per_node_second,
        coalesce(own.weight_node_days, fallback.weight_node_days) * 86400 as weight_node_seconds
    from classes
    left join reference.background_rates as own
        on classes.evidence_class = own.evidence_class
    inner join reference.background_rates as fallback
        on fallback.evidence_class = '*'
)

select
    assumed.cluster,
    assumed.evidence_class,
    coalesce(quiet.occurrences, 0) as occurrences,
    exposure.quiet_node_seconds,
    (coalesce(quiet.occurrences, 0) + assumed.rate_per_node_second * assumed.weight_node_seconds)
    / (exposure.quiet_node_seconds + assumed.weight_node_seconds) as rate_per_node_second
from assumed
inner join intermediate.attribution__exposure as exposure
    on assumed.cluster = exposure.cluster
left join quiet
    on assumed.cluster = quiet.cluster and assumed.evidence_class = quiet.evidence_class
