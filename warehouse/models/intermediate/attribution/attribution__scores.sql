-- One row per interruption and cause: its posterior probability over all nodes it may sit in, the likeliest node, and
-- the piece of evidence that leads.
-- The leading piece is what began it: the earliest of those that weigh about as much as the heaviest (within a factor
-- of 50), of what is known to speak for the cause. What came after the end leads only where nothing else speaks for it:
-- nodes left out, drains, boots, tests; logs of machines get two minutes, for clocks differ. What ranks say of each
-- other comes after what a machine says. `rule` is that of the heaviest piece, whenever it came: the verdict rests on
-- it.
-- Parts: intermediate.attribution__hypotheses
-- Slice: interruption_id
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

placed as (
    select
        weights.*,
        (
            weights.evidence_class = 'node_left_out'
            or weights.seconds_before_end
            < if(
                weights.kind in ('hardware event', 'training log')
                and weights.is_fault
                and not regexp_matches(weights.evidence_class, '^(health_check|diagnostic)_'),
                -120,
                0
            )
        ) as is_late,
        weights.log_weight > 0 as is_for
    from intermediate.attribution__weights as weights
    inner join causes
        on
            weights.interruption_id = causes.interruption_id
            and weights.cause = causes.cause
            and (weights.suspect is null or weights.suspect = causes.suspect)
    where not weights.is_leak
),

pieces as (
    select
        *,
        max(log_weight) over (partition by interruption_id, cause, is_for, is_late) as top_weight
    from placed
),

led as (
    select
        *,
        row_number() over (
            partition by interruption_id, cause
            order by
                is_for desc,
                is_late asc,
                (round(log_weight, 6) < round(top_weight, 6) - 4)::int asc,
                (evidence_class in ('log_nccl_error', 'log_nccl_timeout'))::int asc,
                date_trunc('second', first_at) asc,
                (node is null)::int asc,
                -- 154 reports what another Xid did
                (evidence_class = 'xid_154')::int asc,
                is_fatal desc,
                round(log_weight, 6) desc,
                evidence_id asc
        ) as leading_rank,
        row_number() over (
            partition by interruption_id, cause
            order by
                round(log_weight, 6) desc,
                first_at asc,
                evidence_id asc
        ) as weight_rank
    from pieces
),

leads as (
    select
        interruption_id,
        cause,
        max(if(leading_rank = 1, evidence_id, null)) as evidence_id,
        max(if(weight_rank = 1, rule, null)) as rule,
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
