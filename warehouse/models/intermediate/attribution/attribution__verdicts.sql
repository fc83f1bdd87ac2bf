-- One row per interruption: the likeliest cause, or the operator's label, and the runner-up.
-- A stop that passes for planned though nothing is known of the steps never gets more than 0.9.
with ranked as (
    select
        interruption_id,
        max(if(cause_rank = 1, cause, null)) as cause,
        max(if(cause_rank = 1, posterior, null)) as posterior,
        max(if(cause_rank = 1, rule, null)) as rule,
        max(if(cause_rank = 1, evidence_id, null)) as evidence_id,
        max(if(cause_rank = 1, suspect, null)) as suspect,
        max(if(cause_rank = 1, suspect_gpu, null)) as suspect_gpu,
        bool_or(cause_rank = 1 and is_confirmed) as is_confirmed,
        max(if(cause_rank = 2, cause, null)) as runner_up_cause,
        max(if(cause_rank = 2, posterior, null)) as runner_up_confidence
    from intermediate.attribution__scores
    group by interruption_id
),

-- Rivals of one class share what is known of the class: a stop that was planned either way is planned.
classes as (
    select
        scores.interruption_id,
        causes.class,
        least(round(sum(scores.posterior), 3), 1) as posterior
    from intermediate.attribution__scores as scores
    inner join reference.causes as causes
        on scores.cause = causes.code
    group by scores.interruption_id, causes.class
),

labelled as (
    select
        interruption_id,
        labelled_cause,
        node as labelled_node,
        evidence_id
    from intermediate.attribution__candidates
    where kind = 'operator label'
)

select
    ranked.interruption_id,
    coalesce(labelled.labelled_cause, ranked.cause) as cause,
    case
        when labelled.labelled_cause is not null then 1.0
        when ranked.cause in ('operator_change', 'time_limit') and not stops.is_progress_observed
            then least(ranked.posterior, 0.9)
        else ranked.posterior
    end as confidence,
    case
        when labelled.labelled_cause is not null then 1.0
        when ranked.cause in ('operator_change', 'time_limit') and not stops.is_progress_observed
            then least(classes.posterior, 0.9)
        else classes.posterior
    end as class_confidence,
    if(labelled.labelled_cause is null, ranked.rule, 'operator_label') as rule,
    coalesce(labelled.evidence_id, ranked.evidence_id) as evidence_id,
    if(
        labelled.labelled_cause is null or priors.scope = 'node', coalesce(labelled.labelled_node, ranked.suspect), null
    ) as suspect,
    if(coalesce(labelled.labelled_cause = ranked.cause, true), ranked.suspect_gpu, null) as suspect_gpu,
    ranked.is_confirmed and coalesce(labelled.labelled_cause = ranked.cause, true) as is_confirmed,
    if(labelled.labelled_cause is null, ranked.runner_up_cause, ranked.cause) as runner_up_cause,
    if(labelled.labelled_cause is null, ranked.runner_up_confidence, ranked.posterior) as runner_up_confidence
from ranked
inner join intermediate.attribution__stops as stops
    on ranked.interruption_id = stops.interruption_id
left join reference.causes as causes
    on ranked.cause = causes.code
left join classes
    on ranked.interruption_id = classes.interruption_id and causes.class = classes.class
left join labelled
    on ranked.interruption_id = labelled.interruption_id
left join reference.cause_priors as priors
    on labelled.labelled_cause = priors.cause
