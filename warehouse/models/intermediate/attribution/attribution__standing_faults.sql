-- One row per interruption and fatal fault that stood on its nodes before the attempt began and was not cleared.
select
    index.interruption_id,
    'standing fault' as kind,
    concat('standing_', faults.evidence_class) as evidence_class,
    faults.cluster,
    faults.node,
    faults.device_kind,
    faults.device,
    faults.code,
    faults.is_fatal,
    faults.is_cleanup,
    faults.first_at,
    faults.last_at,
    faults.events,
    null::varchar as unit,
    faults.record_id,
    faults.text
from intermediate.hardware__faults as faults
inner join intermediate.runs__attempt_nodes as nodes
    on faults.cluster = nodes.cluster and faults.node = nodes.node
inner join intermediate.interruptions__index as index
    on nodes.record_id = index.record_id
where
    faults.is_fatal
    and faults.first_at < index.started_at
    and (faults.cleared_at is null or faults.cleared_at > index.started_at)
