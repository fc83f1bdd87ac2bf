-- One row per boot around the end that no orderly restart announced, and per reason that says so.
-- A node that is out of service long since is booted by whoever works on it.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'unexpected_reboot' as rule,
    candidates.evidence_class as weight_class
from intermediate.attribution__candidates as candidates
cross join settings.attribution as attribution
where
    candidates.evidence_class = 'reason_unexpected_reboot'
    or (
        candidates.evidence_class = 'boot_unexpected'
        and candidates.seconds_before_end >= -attribution.after_seconds
    )
