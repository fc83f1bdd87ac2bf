-- One row per node that people took out without notice around the end, for inspection, repair or reboot.
-- A node taken out after the end was looked at because of the stop: that follows any fault of the node, and names none.
select
    interruption_id,
    evidence_id,
    'host_maintenance' as rule,
    case
        when seconds_before_end < 0 then 'taken_out_after_end'
        when evidence_class = 'reason_host_maintenance' then 'reason_host_maintenance'
        else 'taken_out_unnamed'
    end as weight_class
from intermediate.attribution__candidates
where
    kind = 'node state'
    and is_person
    and not is_planned_rollout
    and evidence_class in ('reason_host_maintenance', 'reason_other', 'reason_none')
