-- One row per interruption and kind of fatal fault that still stood on a device of its nodes when it ended.
-- `standing_` if it began before the attempt, `uncleared_` if it began in it, before the evidence window. Faults of one
-- kind on one device are one piece of evidence.
select
    index.interruption_id,
    'standing fault' as kind,
    concat(
        if(faults.first_at < index.started_at, 'standing_', 'uncleared_'), faults.evidence_class
    ) as evidence_class,
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
inner join intermediate.attribution__stops as stops
    on index.interruption_id = stops.interruption_id
where
    faults.is_fatal
    and faults.last_at < stops.opens_at
    and (faults.cleared_at is null or faults.cleared_at > index.ended_at)
group by
    index.interruption_id,
    faults.first_at < index.started_at,
    faults.evidence_class,
    faults.cluster,
    faults.node,
    faults.device_kind,
    faults.device,
    faults.code
