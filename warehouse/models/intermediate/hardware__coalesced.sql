-- One row per fault: events of one kind on one device, at most a gap apart, with what put the node or the GPU right.
-- All-clears, boots and the like are no faults: see reference.event_classes. `record_id` is that of the first event.
-- Slice: cluster, node, evidence_class, code, device
-- Dirty: select cluster, node, evidence_class, code, device from delta.intermediate__hardware__events where is_fault
-- Dirty: union all select cluster, node, evidence_class, code, device from intermediate.hardware__coalesced
-- Dirty: semi join delta.intermediate__hardware__clearings using (cluster, node)
with events as (
    select
        cluster,
        node,
        device,
        gpu_index,
        code,
        evidence_class,
        is_fatal,
        is_cleanup,
        occurred_at,
        record_id
    from intermediate.hardware__events
    where is_fault
),

nodes_cleared as (
    select
        cluster,
        node,
        cleared_at,
        cleared_by
    from intermediate.hardware__clearings
    where gpu_index is null
),

gpus_cleared as (
    select
        cluster,
        node,
        gpu_index,
        cleared_at
    from intermediate.hardware__clearings
    where gpu_index is not null
),

-- What puts a node or a GPU right ends a fault even in the middle of a storm.
chances as (
    select
        events.*,
        nodes_cleared.cleared_at as put_right_at,
        nodes_cleared.cleared_by as put_right_by,
        gpus_cleared.cleared_at as tested_at
    from events
    asof left join nodes_cleared
        on
            events.cluster = nodes_cleared.cluster
            and events.node = nodes_cleared.node
            and events.occurred_at < nodes_cleared.cleared_at
    asof left join gpus_cleared
        on
            events.cluster = gpus_cleared.cluster
            and events.node = gpus_cleared.node
            and events.gpu_index = gpus_cleared.gpu_index
            and events.occurred_at < gpus_cleared.cleared_at
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
    device,
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
    arg_min(record_id, (occurred_at, record_id)) as record_id
from numbered
group by cluster, node, evidence_class, code, device, fault_number
