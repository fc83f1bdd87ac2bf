-- One row per interruption and piece of evidence: what it is, what part it plays, and how much it weighs.
-- `weight` is ln(P(evidence | the verdict's cause) / P(by chance)); null where it says nothing of that cause.
with weights as (
    select
        weights.evidence_id,
        round(max(weights.log_weight) filter (where weights.cause = verdicts.cause), 3) as weight,
        bool_or(weights.cause <> verdicts.cause and weights.log_weight > 0) as speaks_for_another
    from intermediate.attribution__weights as weights
    inner join intermediate.attribution__verdicts as verdicts
        on weights.interruption_id = verdicts.interruption_id
    group by weights.evidence_id
),

placed as (
    select
        candidates.*,
        weights.weight,
        weights.speaks_for_another,
        verdicts.evidence_id = candidates.evidence_id as is_leading,
        leading_piece.node as leading_node,
        leading_piece.device as leading_device,
        leading_piece.first_at as leading_at
    from intermediate.attribution__candidates as candidates
    inner join intermediate.attribution__verdicts as verdicts
        on candidates.interruption_id = verdicts.interruption_id
    left join intermediate.attribution__candidates as leading_piece
        on verdicts.evidence_id = leading_piece.evidence_id
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
        when weight > 0 then 'cascade'
        when kind = 'hardware event' and node = leading_node and device = leading_device then 'cascade'
        when speaks_for_another and leading_node is not null and coalesce(node, '') <> leading_node then 'bystander'
        when speaks_for_another then 'cascade'
        when kind in ('scheduler state', 'node state') then 'cascade'
        else 'noise'
    end as role,
    weight,
    record_id,
    text
from placed
