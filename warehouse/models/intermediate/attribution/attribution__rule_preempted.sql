-- One row per attempt the scheduler preempted.
select
    interruption_id,
    evidence_id,
    'preempted' as rule,
    'state_preempted' as weight_class
from intermediate.attribution__candidates
where evidence_class = 'state_preempted'
