-- One row per sign that host memory ran out: the scheduler's state, or the kernel's killer.
select
    interruption_id,
    evidence_id,
    'out_of_memory' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where evidence_class in ('state_out_of_memory', 'oom_kill')
