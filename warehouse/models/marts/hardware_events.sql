-- One row per thing a machine reported.
-- Slice: occurred_at
select
    cluster,
    node,
    occurred_at,
    event_class as class,
    evidence_class,
    code,
    device_kind,
    device,
    if(device_kind = 'gpu', device, null) as gpu,
    gpu_index,
    gpu_uuid,
    severity,
    unit,
    is_fatal,
    is_cleanup,
    is_fault,
    pid,
    process,
    gpu_instance,
    compute_instance,
    monotonic_us,
    text,
    record_id,
    flags
from staging.hardware__events
