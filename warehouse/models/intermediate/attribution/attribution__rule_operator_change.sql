-- One row per orderly stop (requeued, cancelled, or completed) that was resumed soon, with no fault standing. Steps
-- that went on until the end say much more than that nothing is known of them.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'operator_change' as rule,
    if(stops.is_progress_observed, 'orderly_stop_observed', 'orderly_stop_resumed') as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__orderly as orderly
    on candidates.interruption_id = orderly.interruption_id
inner join intermediate.attribution__stops as stops
    on candidates.interruption_id = stops.interruption_id
where
    candidates.kind = 'scheduler state'
    and orderly.is_orderly
    and not orderly.is_time_limit
    and (orderly.is_resumed_in_window or candidates.evidence_class = 'state_completed')
    and candidates.evidence_class in ('state_requeued', 'state_cancelled', 'state_completed')
