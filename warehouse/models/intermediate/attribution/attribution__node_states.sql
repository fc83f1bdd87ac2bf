-- One row per interruption and interval in which one of its nodes was taken out around the attempt's end.
-- Drains of people count in their own, wider window; the class comes from the reason's words.
with states as (
    select
        states.*,
        coalesce(reasons.evidence_class, if(states.reason is null, 'reason_none', 'reason_other')) as evidence_class,
        coalesce(reasons.is_planned_rollout, false) as is_planned_rollout,
        coalesce(reasons.is_person, false)
        or coalesce(states.set_by not in ('slurm', 'slurmd', 'slurmctld'), false) as is_person
    from staging.scheduler__node_states as states
    left join intermediate.scheduler__reasons as reasons
        on states.reason = reasons.reason
)

select
    index.interruption_id,
    'node state' as kind,
    states.evidence_class,
    states.cluster,
    states.node,
    'node' as device_kind,
    null::varchar as device,
    null::bigint as code,
    states.is_planned_rollout,
    states.is_person,
    states.state,
    states.started_at as first_at,
    states.observed_until as last_at,
    1 as events,
    states.record_id,
    concat_ws(' ', states.state_raw, states.reason, concat('(by ', states.set_by, ')')) as text
from states
inner join intermediate.runs__attempt_nodes as nodes
    on states.cluster = nodes.cluster and states.node = nodes.node
inner join intermediate.interruptions__index as index
    on nodes.record_id = index.record_id
cross join settings.attribution as attribution
where
    states.started_at between greatest(
        index.started_at,
        index.ended_at - to_seconds(
            if(states.is_person, attribution.maintenance_before_seconds, attribution.before_seconds)
        )
    )
    and index.ended_at + to_seconds(
        if(states.is_person, attribution.maintenance_after_seconds, attribution.after_seconds)
    )
    and (
        states.started_at <= index.ended_at
        or nodes.owned_until is null
        or states.started_at < nodes.owned_until
    )
