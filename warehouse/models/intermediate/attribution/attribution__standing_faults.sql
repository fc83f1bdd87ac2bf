-- One row per interruption and kind of fatal fault that still stood on a device of its nodes when it ended.
-- `standing_` if it began before the attempt, `uncleared_` if it began in it, before the evidence window. Faults of one
-- kind on one device are one piece of evidence.
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__attribution__event_windows
-- Dirty: union all select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select stops.interruption_id from intermediate.attribution__stops as stops
-- Dirty: inner join delta.intermediate__hardware__faults as faults on stops.cluster = faults.cluster
-- Dirty: where faults.is_fatal and faults.last_at < stops.opens_at
-- Dirty: and (faults.cleared_at is null or faults.cleared_at > stops.ended_at)
with standing as (
    select
        stops.interruption_id,
        concat(
            if(faults.first_at < stops.started_at, 'standing_', 'uncleared_'), faults.evidence_class
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
        arg_min(faults.record_id, (faults.first_at, faults.record_id)) as record_id
    from intermediate.hardware__faults as faults
    inner join intermediate.attribution__event_windows as windows
        on faults.cluster = windows.cluster and faults.node = windows.node
    inner join intermediate.attribution__stops as stops
        on windows.interruption_id = stops.interruption_id
    where
        faults.is_fatal
        and faults.last_at < stops.opens_at
        and (faults.cleared_at is null or faults.cleared_at > stops.ended_at)
    group by
        stops.interruption_id,
        faults.first_at < stops.started_at,
        faults.evidence_class,
        faults.cluster,
        faults.node,
        faults.device_kind,
        faults.device,
        faults.code
)

select
    standing.interruption_id,
    'standing fault' as kind,
    standing.evidence_class,
    standing.cluster,
    standing.node,
    standing.device_kind,
    standing.device,
    standing.code,
    standing.is_fatal,
    standing.is_cleanup,
    standing.first_at,
    standing.last_at,
    standing.events,
    null::varchar as unit,
    standing.record_id,
    faults.text
from standing
inner join intermediate.hardware__faults as faults  -- texts are long, and few faults stand
    on standing.first_at = faults.first_at and standing.record_id = faults.record_id
