-- One row per interruption and cause: its posterior probability over all nodes it may sit in, the likeliest node, and
-- the piece of evidence that leads.
-- The leading piece is the earliest of those that weigh about as much as the heaviest (within a factor of 50).
with ranked as (
    select
        *,
        exp(score - max(score) over (partition by interruption_id)) as share,
        row_number() over (
            partition by interruption_id, cause
            order by
                round(score, 6) desc,
                suspect asc
        ) as suspect_rank
    from intermediate.attribution__hypotheses
),

summed as (
    select
        interruption_id,
        cause,
        sum(share) as share,
        max(if(suspect_rank = 1, suspect, null)) as suspect
    from ranked
    group by interruption_id, cause
),

causes as (
    select
        interruption_id,
        cause,
        suspect,
        share / sum(share) over (partition by interruption_id) as posterior
    from summed
),

pieces as (
    select
        weights.*,
        max(weights.log_weight) over (partition by weights.interruption_id, weights.cause) as top_weight
    from intermediate.attribution__weights as weights
    inner join causes
        on
            weights.interruption_id = causes.interruption_id
            and weights.cause = causes.cause
            and (weights.suspect is null or weights.suspect = causes.suspect)
    where not weights.is_leak
),

led as (
    select
        *,
        row_number() over (
            partition by interruption_id, cause
            order by
                (round(log_weight, 6) < round(top_weight, 6) - 4)::int asc,
                date_trunc('second', first_at) asc,
                -- 154 reports what another Xid did
                (evidence_class = 'xid_154')::int asc,
                is_fatal desc,
                round(log_weight, 6) desc,
                evidence_id asc
        ) as leading_rank
    from pieces
),

leads as (
    select
        interruption_id,
        cause,
        max(if(leading_rank = 1, evidence_id, null)) as evidence_id,
        max(if(leading_rank = 1, rule, null)) as rule,
        arg_min(device, leading_rank) filter (where device_kind = 'gpu') as any_gpu,
        -- 46 and 109 are hangs that a program may cause as well: suspected at most
        bool_or(is_fatal and device_kind <> 'node' and weight_class <> 'gpu_hang') as is_confirmed
    from led
    group by interruption_id, cause
)

select
    causes.interruption_id,
    causes.cause,
    causes.suspect,
    leads.evidence_id,
    leads.rule,
    leads.any_gpu as suspect_gpu,
    coalesce(leads.is_confirmed, false) as is_confirmed,
    round(causes.posterior, 3) as posterior,
    row_number() over (
        partition by causes.interruption_id
        order by
            round(causes.posterior, 6) desc,
            causes.cause asc
    ) as cause_rank
from causes
left join leads
    on
        causes.interruption_id = leads.interruption_id
        and causes.cause = leads.cause
