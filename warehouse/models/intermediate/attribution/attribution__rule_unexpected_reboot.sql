-- One row per boot that no orderly restart announced, and per reason that says so.
select
    interruption_id,
    evidence_id,
    'unexpected_reboot' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where evidence_class in ('boot_unexpected', 'reason_unexpected_reboot')
