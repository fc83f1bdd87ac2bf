-- One row per node that people took out for inspection, repair or reboot, without notice, around the end.
select
    interruption_id,
    evidence_id,
    'host_maintenance' as rule,
    'reason_host_maintenance' as weight_class
from intermediate.attribution__candidates
where
    kind = 'node state'
    and is_person
    and not is_planned_rollout
    and evidence_class in ('reason_host_maintenance', 'reason_other', 'reason_none')
