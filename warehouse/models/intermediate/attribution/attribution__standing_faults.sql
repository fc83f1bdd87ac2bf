-- One row per interruption and kind of fatal fault that stood on a device of its nodes before the attempt began.
-- It stands until cleared; faults of one kind on one device are one piece of evidence.
select
    index.interruption_id,
    'standing fault' as kind,
    concat('standing_', faults.evidence_class) as evidence_class,
    faults.cluster,
    faults.node,
    faults.device_kind,
    faults.device,
    faults.code,
    bool_or(faults.is_fatal) as is_fatal,
    bool_or(faults.is_cleanup) as is_cleanup,
    min(faults.first_at) as first_at,
    max(faults.last_at) as last_at,
    sum(faults.events)::bigint as events,
    null::varchar as unit,
    arg_min(faults.record_id, (faults.first_at, faults.record_id)) as record_id,
    arg_min(faults.text, (faults.first_at, faults.record_id)) as text
from intermediate.hardware__faults as faults
inner join intermediate.runs__attempt_nodes as nodes
    on faults.cluster = nodes.cluster and faults.node = nodes.node
inner join intermediate.interruptions__index as index
    on nodes.record_id = index.record_id
where
    faults.is_fatal
    and faults.first_at < index.started_at
    and (faults.cleared_at is null or faults.cleared_at > index.started_at)
group by
    index.interruption_id,
    faults.evidence_class,
    faults.cluster,
    faults.node,
    faults.device_kind,
    faults.device,
    faults.code
