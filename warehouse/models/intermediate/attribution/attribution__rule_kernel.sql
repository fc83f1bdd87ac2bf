-- One row per kernel fault: panic, oops, lock-up.
select
    interruption_id,
    evidence_id,
    'kernel' as rule,
    if(evidence_class in ('kernel_panic', 'hard_lockup'), 'kernel_fatal', 'kernel_trouble') as weight_class
from intermediate.attribution__candidates
where evidence_class in ('kernel_panic', 'kernel_oops', 'soft_lockup', 'hard_lockup')
