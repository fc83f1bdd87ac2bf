-- One row per interruption and cause: its posterior probability, and the piece of evidence that speaks loudest for it.
-- A cause without evidence keeps its prior; `unknown` is a cause like any other.
with evidence as (
    select
        interruption_id,
        cause,
        sum(log_weight) as log_weight,
        arg_max(evidence_id, (round(log_weight, 9), -epoch_us(first_at), evidence_id)) as evidence_id,
        arg_max(rule, (round(log_weight, 9), -epoch_us(first_at), evidence_id)) as rule,
        bool_or(is_fatal and device_kind <> 'node') as is_confirmed
    from intermediate.attribution__weights
    where piece = 1
    group by interruption_id, cause
),

scored as (
    select
        index.interruption_id,
        priors.cause,
        ln(priors.prior) + coalesce(evidence.log_weight, 0) as score,
        evidence.evidence_id,
        evidence.rule,
        coalesce(evidence.is_confirmed, false) as is_confirmed
    from intermediate.interruptions__index as index
    cross join reference.cause_priors as priors
    left join evidence
        on
            index.interruption_id = evidence.interruption_id
            and priors.cause = evidence.cause
    where priors.is_without_evidence or evidence.cause is not null
),

shares as (
    select
        *,
        exp(score - max(score) over (partition by interruption_id)) as share
    from scored
)

select
    * exclude (share, score),
    round(share / sum(share) over (partition by interruption_id), 3) as posterior,
    row_number() over (
        partition by interruption_id
        order by
            round(score, 6) desc,
            cause asc
    ) as cause_rank
from shares
