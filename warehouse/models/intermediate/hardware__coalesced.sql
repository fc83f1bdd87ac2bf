-- One row per fault: events of one kind on one device, at most a gap apart, with what put the node or the GPU right.
-- A boot, a driver reload, and the end of a DOWN, DRAIN or FAIL interval put a node right; a diagnostic that a GPU
-- passed, that GPU; an interval still open puts nothing right. All-clears, boots and the like are no faults: see
-- reference.event_classes.
-- Slice: cluster, node
with clearings as (
    select
        cluster,
        node,
        occurred_at as cleared_at,
        'boot' as cleared_by
    from intermediate.hardware__events
    where event_class = 'boot'
    union all
    select
        cluster,
        node,
        ended_at,
        concat('end of ', state)
    from staging.scheduler__node_states
    where ended_at is not null and is_out
    union all
    select
        cluster,
        node,
        occurred_at,
        'driver reload'
    from intermediate.hardware__events
    where event_class = 'driver_load'
),

distinct_clearings as (
    select
        cluster,
        node,
        cleared_at,
        min(cleared_by) as cleared_by
    from clearings
    group by cluster, node, cleared_at
),

tests as (
    select distinct
        cluster,
        node,
        gpu_index,
        occurred_at as tested_at
    from intermediate.hardware__events
    where event_class = 'diagnostic_passed' and gpu_index is not null
),

events as (
    select
        cluster,
        node,
        device_kind,
        device,
        gpu_index,
        event_class,
        code,
        severity,
        evidence_class,
        is_fatal,
        is_cleanup,
        occurred_at,
        record_id,
        text
    from intermediate.hardware__events
    where is_fault
),

-- What puts a node or a GPU right ends a fault even in the middle of a storm.
chances as (
    select
        events.*,
        distinct_clearings.cleared_at as put_right_at,
        distinct_clearings.cleared_by as put_right_by,
        tests.tested_at
    from events
    asof left join distinct_clearings
        on
            events.cluster = distinct_clearings.cluster
            and events.node = distinct_clearings.node
            and events.occurred_at < distinct_clearings.cleared_at
    asof left join tests
        on
            events.cluster = tests.cluster
            and events.node = tests.node
            and events.gpu_index = tests.gpu_index
            and events.occurred_at < tests.tested_at
),

gaps as (
    select
        chances.*,
        coalesce(
            lag(occurred_at) over same_kind < occurred_at - to_seconds(attribution.coalesce_gap_seconds)
            or lag(put_right_at) over same_kind is distinct from put_right_at
            or lag(tested_at) over same_kind is distinct from tested_at,
            true
        )::int as is_new
    from chances
    cross join settings.attribution as attribution
    window
        same_kind as (
            partition by cluster, node, evidence_class, code, device
            order by occurred_at, record_id
        )
),

numbered as (
    select
        *,
        sum(is_new) over (
            partition by cluster, node, evidence_class, code, device
            order by occurred_at, record_id
            rows unbounded preceding
        ) as fault_number
    from gaps
)

select
    cluster,
    node,
    arg_min(device_kind, (occurred_at, record_id)) as device_kind,
    device,
    arg_min(gpu_index, (occurred_at, record_id)) as gpu_index,
    arg_min(event_class, (occurred_at, record_id)) as event_class,
    code,
    evidence_class,
    bool_or(is_fatal) as is_fatal,
    bool_or(is_cleanup) as is_cleanup,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at,
    count(*) as events,
    any_value(put_right_at) as put_right_at,
    any_value(put_right_by) as put_right_by,
    any_value(tested_at) as tested_at,
    arg_min(record_id, (occurred_at, record_id)) as record_id,
    arg_min(text, (occurred_at, record_id)) as text
from numbered
group by cluster, node, evidence_class, code, device, fault_number
