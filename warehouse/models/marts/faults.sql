-- One row per fault: events of one kind on one device, coalesced, until it was cleared.
-- Slice: first_at
select
    fault_id,
    cluster,
    node,
    device_kind,
    device,
    if(device_kind = 'gpu', device, null) as gpu,
    gpu_index,
    event_class as class,
    code,
    evidence_class,
    is_fatal,
    first_at,
    last_at,
    events,
    cleared_at,
    cleared_by,
    record_id,
    text
from intermediate.hardware__faults
