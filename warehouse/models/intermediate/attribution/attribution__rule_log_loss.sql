-- One row per loss that was no number, or leapt, with which training stopped.
select
    interruption_id,
    evidence_id,
    'log_loss' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where
    evidence_class in (
        'log_loss_not_finite', 'log_loss_spike'
    )
