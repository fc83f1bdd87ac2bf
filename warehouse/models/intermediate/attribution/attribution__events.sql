-- One row per interruption and kind of hardware event on one device in its window.
-- Repetitions count once: a storm of lines is one piece of evidence. The range join of events with windows is an
-- equi-join on node and 15-minute bucket, each window standing in every bucket it touches: see docs/decisions.md.
-- Slice: interruption_id
-- Whole: intermediate.hardware__events
-- Dirty: select interruption_id from delta.intermediate__attribution__event_windows
-- Dirty: union all select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select windows.interruption_id from delta.intermediate__hardware__events as events
-- Dirty: inner join intermediate.attribution__event_windows as windows using (cluster, node)
-- Dirty: where events.occurred_at between windows.opens_at and windows.closes_at
-- Dirty: union all select stops.interruption_id from delta.intermediate__hardware__events as events
-- Dirty: inner join intermediate.attribution__own_windows as own using (evidence_class)
-- Dirty: inner join intermediate.attribution__stops as stops on events.cluster = stops.cluster
-- Dirty: and events.occurred_at >= stops.ended_at - to_seconds(own.before_seconds)
-- Dirty: and events.occurred_at <= stops.ended_at + to_seconds(own.after_seconds)
with windows as (
    select
        interruption_id,
        cluster,
        node,
        opens_at,
        closes_at,
        unnest(range(epoch(opens_at)::bigint // 900, epoch(closes_at)::bigint // 900 + 1)) as bucket
    from intermediate.attribution__event_windows
),

times as (
    select
        record_id,
        cluster,
        node,
        occurred_at,
        epoch(occurred_at)::bigint // 900 as bucket
    from intermediate.hardware__events
    where evidence_class not in (select evidence_class from intermediate.attribution__own_windows)
),

within as (
    select
        windows.interruption_id,
        times.record_id
    from windows
    inner join times
        on
            windows.bucket = times.bucket
            and windows.node = times.node
            and windows.cluster = times.cluster
            and times.occurred_at between windows.opens_at and windows.closes_at
),

-- A class with a window of its own (a diagnostic, a ticket) reaches beyond the buckets; such events are few.
beyond as (
    select
        stops.interruption_id,
        events.record_id
    from intermediate.hardware__events as events
    inner join intermediate.attribution__own_windows as own
        on events.evidence_class = own.evidence_class
    inner join intermediate.attribution__event_windows as windows
        on events.cluster = windows.cluster and events.node = windows.node
    inner join intermediate.attribution__stops as stops
        on windows.interruption_id = stops.interruption_id
    where
        events.occurred_at between greatest(stops.started_at, stops.ended_at - to_seconds(own.before_seconds))
        and stops.ended_at + to_seconds(own.after_seconds)
        and (
            date_trunc('second', events.occurred_at) <= stops.ended_at
            or windows.owned_until is null
            or events.occurred_at < windows.owned_until
        )
),

owned as (
    select * from within
    union all
    select * from beyond
)

select
    owned.interruption_id,
    'hardware event' as kind,
    events.evidence_class,
    events.cluster,
    events.node,
    events.device_kind,
    events.device,
    events.code,
    bool_or(events.is_fatal) as is_fatal,
    bool_or(events.is_cleanup) as is_cleanup,
    bool_or(events.is_fault) as is_fault,
    min(events.occurred_at) as first_at,
    max(events.occurred_at) as last_at,
    count(*) as events,
    arg_min(events.unit, (events.occurred_at, events.record_id)) as unit,
    arg_min(events.record_id, (events.occurred_at, events.record_id)) as record_id,
    arg_min(events.text, (events.occurred_at, events.record_id)) as text
from owned
inner join intermediate.hardware__events as events
    on owned.record_id = events.record_id
group by
    owned.interruption_id,
    events.evidence_class,
    events.cluster,
    events.node,
    events.device_kind,
    events.device,
    events.code
