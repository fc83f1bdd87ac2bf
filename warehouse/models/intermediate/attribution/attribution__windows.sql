-- One row per interruption and maintenance window, known before, that covers its end on one of its nodes.
-- A reservation the job itself ran in is its home, not its end; nor did a window end an attempt that began in it, or
-- that ran on for longer than the resume window.
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__interruptions__index
-- Dirty: union all select interruption_id from intermediate.interruptions__index
-- Dirty: where cluster in (select cluster from delta.staging__calendar__windows)
-- Dirty: union all select interruption_id from intermediate.interruptions__index
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
select distinct
    index.interruption_id,
    'window' as kind,
    'window_maintenance' as evidence_class,
    windows.cluster,
    null::varchar as node,
    'node' as device_kind,
    null::varchar as device,
    null::bigint as code,
    windows.started_at as first_at,
    windows.ended_at as last_at,
    1 as events,
    windows.record_id,
    concat_ws(' ', windows.kind, windows.text) as text
from staging.calendar__windows as windows
inner join intermediate.interruptions__index as index
    on
        windows.cluster = index.cluster
        and windows.started_at > index.started_at
        and windows.started_at <= index.ended_at
        and windows.started_at >= index.ended_at - to_seconds(index.resume_window_seconds)
        and (windows.ended_at is null or windows.ended_at >= index.ended_at)
        and windows.name is distinct from index.reservation
left join staging.scheduler__host_lists as host_lists
    on index.cluster = host_lists.cluster and index.node_list = host_lists.node_list
where
    windows.is_maintenance
    and index.state in ('CANCELLED', 'REQUEUED', 'COMPLETED', 'PREEMPTED', 'TIMEOUT', 'NODE_FAIL')
    and (
        windows.is_whole_cluster
        or list_has_any(windows.nodes, host_lists.nodes)
    )
