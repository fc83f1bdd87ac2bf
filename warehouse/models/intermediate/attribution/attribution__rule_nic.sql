-- One row per network adapter that failed: firmware fatal, health poll, commands that time out, or a reason naming it.
select
    interruption_id,
    evidence_id,
    'nic' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where evidence_class in ('nic_fatal', 'nic_nonfatal', 'reason_nic')
