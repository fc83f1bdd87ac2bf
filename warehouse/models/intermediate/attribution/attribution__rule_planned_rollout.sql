-- One row per drain whose reason names a rollout, where the attempt ended in order and the node had no fault before.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'planned_rollout' as rule,
    'planned_rollout' as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__stops as stops
    on candidates.interruption_id = stops.interruption_id
cross join settings.attribution as attribution
anti join intermediate.hardware__faults as faults
    on
        faults.is_fatal
        and candidates.cluster = faults.cluster
        and candidates.node = faults.node
        and candidates.first_at - to_seconds(attribution.fault_free_seconds) <= faults.last_at
        and stops.ended_at >= faults.first_at
where
    candidates.is_planned_rollout
    -- set before the end, or by the script that ended it
    and candidates.seconds_before_end >= -120
    and stops.state in ('REQUEUED', 'CANCELLED', 'COMPLETED', 'PREEMPTED')
