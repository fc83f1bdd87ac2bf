-- One row per node and interval out of normal service, classed for attribution by the words of its reason.
select
    states.*,
    coalesce(reasons.evidence_class, if(states.reason is null, 'reason_none', 'reason_other')) as evidence_class,
    coalesce(reasons.is_planned_rollout, false) as is_planned_rollout,
    coalesce(reasons.is_person, false)
    or coalesce(states.set_by not in ('slurm', 'slurmd', 'slurmctld'), false) as is_person
from staging.scheduler__node_states as states
left join intermediate.scheduler__reasons as reasons
    on states.reason = reasons.reason
