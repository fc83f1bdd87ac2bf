-- One row per interruption and piece of evidence: what it is, what part it plays, and how much it weighs.
-- `weight` is ln(P(evidence | the verdict's cause, on the node blamed) / P(by chance)); null = it says nothing of that.
-- What came before what began the stop did not follow from it; clocks differ, so it gets a minute, what Slurm says two.
-- Where Slurm's word is all that tells of the beginning, it gets ten: Slurm notices late that a node is gone.
-- What another node shows followed only if it came within a minute, and is the same, a time-out, or speaks for the
-- verdict wherever it stands; file systems and processes of other nodes have trouble of their own.
-- Slice: interruption_id
with weights as (
    select
        weights.evidence_id,
        round(
            max(weights.log_weight) filter (
                where weights.cause = verdicts.cause
                and (weights.suspect is null or weights.suspect = verdicts.culprit_node)
            ),
            3
        ) as weight,
        bool_or(weights.cause <> verdicts.cause and weights.log_weight > 0) as speaks_for_another
    from intermediate.attribution__weights as weights
    inner join intermediate.interruptions__verdicts as verdicts
        on weights.interruption_id = verdicts.interruption_id
    group by weights.evidence_id
),

-- An operator's label came long after what it names: then the program's own piece for that cause is what began it.
leads as (
    select
        verdicts.interruption_id,
        verdicts.culprit_node as suspect,
        verdicts.evidence_id as leading_id,
        coalesce(scores.evidence_id, if(verdicts.rule = 'operator_label', null, verdicts.evidence_id)) as first_id
    from intermediate.interruptions__verdicts as verdicts
    left join intermediate.attribution__scores as scores
        on verdicts.interruption_id = scores.interruption_id and verdicts.cause = scores.cause
),

placed as (
    select
        candidates.*,
        weights.weight,
        coalesce(weights.weight > 0, false) as is_for,
        coalesce(weights.speaks_for_another, false) as speaks_for_another,
        coalesce(leads.leading_id = candidates.evidence_id, false) as is_leading,
        first_piece.device as first_device,
        candidates.node is null
        or coalesce(candidates.node = coalesce(leads.suspect, first_piece.node), false) as is_here,
        coalesce(
            date_trunc('second', candidates.first_at)
            >= date_trunc('second', first_piece.first_at)
            - to_seconds(
                case
                    when first_piece.kind in ('scheduler state', 'node state') then 600
                    when candidates.kind in ('scheduler state', 'node state') then 120
                    else 60
                end
            ),
            candidates.kind = 'scheduler state'
        ) as is_after,
        coalesce(
            abs(epoch(candidates.first_at) - epoch(first_piece.first_at)) <= 60
            or (candidates.kind <> 'hardware event' and candidates.first_at >= first_piece.first_at),
            false
        )
        and (
            candidates.evidence_class = first_piece.evidence_class
            or (
                candidates.evidence_class not in ('filesystem_error', 'oom_kill', 'process_fault')
                and (
                    coalesce(weights.weight > 0, false)
                    or coalesce(regexp_matches(candidates.text, '(?i)time[ds]?[ -]?out'), false)
                )
            )
        ) as is_alike
    from intermediate.attribution__candidates as candidates
    inner join leads
        on candidates.interruption_id = leads.interruption_id
    left join intermediate.attribution__candidates as first_piece
        on leads.first_id = first_piece.evidence_id
    left join weights
        on candidates.evidence_id = weights.evidence_id
)

select
    interruption_id,
    evidence_id,
    kind,
    evidence_class as class,
    node,
    if(device_kind = 'gpu', device, null) as gpu,
    device,
    first_at as occurred_at,
    last_at,
    events,
    seconds_before_end,
    case
        when is_leading then 'initiating'
        when is_cleanup then 'clean-up'
        when not is_fault and not is_for then 'noise'
        when
            is_here and is_after
            and (
                is_for
                or speaks_for_another
                or kind in ('scheduler state', 'node state')
                or (kind = 'hardware event' and device = first_device)
            )
            then 'cascade'
        when not is_here and is_alike and (is_for or speaks_for_another) then 'cascade'
        when is_for or speaks_for_another then 'bystander'
        else 'noise'
    end as role,
    weight,
    record_id,
    coalesce(
        text, if(evidence_class like 'diagnostic_%', concat_ws(': ', replace(evidence_class, '_', ' '), unit), null)
    ) as text
from placed
