-- One row per node that was shut down or restarted in order while the attempt held it: somebody did it.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'host_reboot' as rule,
    'reboot_in_attempt' as weight_class
from intermediate.attribution__candidates as candidates
where candidates.evidence_class = 'reboot' and candidates.seconds_before_end >= 0
