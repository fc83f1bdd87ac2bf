-- One row per attempt that was cancelled or requeued and not resumed soon: somebody stopped it, nobody says why.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'job_cancelled' as rule,
    'stopped_by_hand' as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__orderly as orderly
    on candidates.interruption_id = orderly.interruption_id
where
    candidates.evidence_class in ('state_cancelled', 'state_requeued')
    and not orderly.is_resumed_in_window
