-- One row per interruption and interval in which one of its nodes was taken out around the attempt's end.
-- Drains of people count in their own window; a rollout's drain in force at the end counts however early it was set,
-- and so does a later word on the same unbroken outage that names a part. The class comes from the reason's words.
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__attribution__event_windows
-- Dirty: union all select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select windows.interruption_id from delta.intermediate__scheduler__node_states as states
-- Dirty: inner join intermediate.attribution__event_windows as windows
-- Dirty: on states.cluster = windows.cluster and states.node = windows.node
-- Dirty: and states.started_at <= windows.owned_until
-- Dirty: inner join intermediate.attribution__stops as stops
-- Dirty: on windows.interruption_id = stops.interruption_id
-- Dirty: and states.started_at >= least(stops.started_at, stops.ended_at)
-- Dirty: where windows.owned_until >= (select min(started_at) from delta.intermediate__scheduler__node_states)
-- Dirty: union all select interruption_id from intermediate.attribution__event_windows as windows
-- Dirty: semi join delta.intermediate__scheduler__node_states as states
-- Dirty: on windows.cluster = states.cluster and windows.node = states.node
-- Dirty: where windows.owned_until is null
select
    stops.interruption_id,
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
from intermediate.scheduler__node_states as states
inner join intermediate.attribution__event_windows as windows
    on states.cluster = windows.cluster and states.node = windows.node
inner join intermediate.attribution__stops as stops
    on windows.interruption_id = stops.interruption_id
cross join settings.attribution as attribution
where
    (
        -- begun around the end
        states.started_at between greatest(
            stops.started_at,
            if(
                states.is_person,
                stops.stopped_at - to_seconds(attribution.maintenance_before_seconds),
                stops.opens_at
            )
        )
        and stops.ended_at + to_seconds(
            if(states.is_person, attribution.maintenance_after_seconds, attribution.after_seconds)
        )
        -- a rollout's drain in force at the end
        or states.is_planned_rollout
        and states.started_at between stops.started_at and stops.ended_at
        and states.observed_until >= stops.ended_at
        -- a later word on the outage that began around the end, if it names a part
        or states.evidence_class not in ('reason_other', 'reason_none', 'reason_planned', 'reason_host_maintenance')
        and states.outage_started_at between stops.started_at and stops.ended_at + to_seconds(attribution.after_seconds)
        and states.started_at between stops.ended_at and stops.ended_at + interval 7 day
        and states.observed_until >= stops.ended_at
    )
    and (
        states.started_at <= stops.ended_at
        or windows.owned_until is null
        or states.started_at < windows.owned_until
    )
