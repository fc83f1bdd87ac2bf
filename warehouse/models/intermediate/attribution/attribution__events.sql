-- One row per interruption and kind of hardware event on one device in its window.
-- Only events the attempt owns: while it held the node, or after its end until another tracked attempt starts there.
-- Repetitions count once: a storm of lines is one piece of evidence.
with events as (
    select
        *,
        epoch(occurred_at)::bigint // 900 as bucket
    from intermediate.hardware__events
),

within as (
    select
        windows.interruption_id,
        windows.ended_at,
        events.*
    from intermediate.attribution__event_windows as windows
    inner join events
        on
            windows.cluster = events.cluster
            and windows.node = events.node
            and windows.bucket = events.bucket
    where
        events.occurred_at between windows.opens_at and windows.closes_at
        and (
            -- whole seconds: schedulers keep no fractions, so the second of the end belongs to the attempt
            date_trunc('second', events.occurred_at) <= windows.ended_at
            or windows.owned_until is null
            or events.occurred_at < windows.owned_until
        )
),

-- A class with a window of its own (a diagnostic, a ticket) reaches beyond the buckets; such events are few.
beyond as (
    select
        index.interruption_id,
        index.ended_at,
        events.*
    from events
    inner join settings.evidence_windows as own
        on events.evidence_class = own.evidence_class
    inner join intermediate.runs__attempt_nodes as nodes
        on events.cluster = nodes.cluster and events.node = nodes.node
    inner join intermediate.interruptions__index as index
        on nodes.record_id = index.record_id
    where
        events.occurred_at between greatest(index.started_at, index.ended_at - to_seconds(own.before_seconds))
        and index.ended_at + to_seconds(own.after_seconds)
        and (
            date_trunc('second', events.occurred_at) <= index.ended_at
            or nodes.owned_until is null
            or events.occurred_at < nodes.owned_until
        )
),

owned as (
    select * from within
    where evidence_class not in (select evidence_class from settings.evidence_windows)
    union all
    select * from beyond
)

select
    interruption_id,
    'hardware event' as kind,
    evidence_class,
    cluster,
    node,
    device_kind,
    device,
    code,
    bool_or(is_fatal) as is_fatal,
    bool_or(is_cleanup) as is_cleanup,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at,
    count(distinct record_id) as events,
    arg_min(unit, (occurred_at, record_id)) as unit,
    arg_min(record_id, (occurred_at, record_id)) as record_id,
    arg_min(text, (occurred_at, record_id)) as text
from owned
group by interruption_id, evidence_class, cluster, node, device_kind, device, code
