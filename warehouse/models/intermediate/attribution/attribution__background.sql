-- One row per cluster and evidence class: how often it occurs on a node when nothing is interrupted.
-- A gamma-Poisson estimate: occurrences outside every evidence window over quiet node-seconds, joined with a documented
-- prior rate that counts as much exposure as reference.background_rates says, so that small fleets lean on it.
-- Slice: cluster
-- Dirty: with candidates as (
-- Dirty: select cluster, node, evidence_class, first_at from delta.intermediate__attribution__candidates
-- Dirty: group by cluster, node, evidence_class, device, code, first_at having sum(_times) <> 0
-- Dirty: ),
-- Dirty: changed as (
-- Dirty: select cluster, first_at as changed_at from delta.intermediate__hardware__faults
-- Dirty: group by cluster, node, evidence_class, device, code, first_at, last_at, is_fatal having sum(_times) <> 0
-- Dirty: union all select cluster, occurred_at from delta.intermediate__hardware__events where not is_fault
-- Dirty: union all select cluster, started_at from delta.intermediate__scheduler__node_states
-- Dirty: group by cluster, node, evidence_class, started_at having sum(_times) <> 0
-- Dirty: union all select faults.cluster, faults.first_at from intermediate.hardware__faults as faults
-- Dirty: inner join delta.intermediate__nodes__failed_ends as failed using (cluster, node)
-- Dirty: cross join settings.attribution as attribution where faults.is_fatal
-- Dirty: and failed.ended_at >= faults.first_at - to_seconds(attribution.after_seconds)
-- Dirty: and failed.ended_at <= faults.first_at + to_seconds(attribution.before_seconds)
-- Dirty: union all select cluster, first_at from candidates
-- Dirty: union all select faults.cluster, faults.first_at from intermediate.hardware__faults as faults
-- Dirty: inner join candidates using (cluster, node, evidence_class)
-- Dirty: where candidates.first_at between faults.first_at and faults.last_at
-- Dirty: )
-- Dirty: select changed.cluster from changed inner join staging.scheduler__span as spans
-- Dirty: on changed.cluster = spans.cluster and changed.changed_at <= spans.rates_until
-- Dirty: union all select cluster from delta.intermediate__attribution__exposure
-- Dirty: union all select cluster from delta.intermediate__attribution__candidates
-- Dirty: where (cluster, evidence_class) not in (
-- Dirty: select (cluster, evidence_class) from intermediate.attribution__background
-- Dirty: intersect select (cluster, evidence_class) from intermediate.attribution__candidates
-- Dirty: )
-- Dirty: union all select cluster from delta.staging__scheduler__span group by cluster
-- Dirty: having count(*) = 1 or count(distinct (first_at, least(last_at, rates_until), rates_until, nodes)) > 1
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

counted as (
    select occurrences.*
    from occurrences
    inner join staging.scheduler__span as spans
        on occurrences.cluster = spans.cluster and occurrences.first_at < spans.rates_until
),

-- A fatal fault just before a job ended there, tracked or not, is a cause at work, not background.
background as (
    select * from counted
    where not is_fatal
    union all
    select counted.*
    from counted
    cross join settings.attribution as attribution
    asof left join intermediate.nodes__failed_ends as failed_ends
        on
            counted.cluster = failed_ends.cluster
            and counted.node = failed_ends.node
            and counted.first_at - to_seconds(attribution.after_seconds) <= failed_ends.ended_at
    where
        counted.is_fatal
        and (
            failed_ends.ended_at is null
            or failed_ends.ended_at > counted.first_at + to_seconds(attribution.before_seconds)
        )
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
