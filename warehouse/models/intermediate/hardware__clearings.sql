-- One row per instant at which something put a node, or one of its GPUs, right.
-- A boot, a driver reload, and the end of a DOWN, DRAIN or FAIL interval put a node right; a diagnostic that a GPU
-- passed, that GPU; an interval still open puts nothing right. `gpu_index` is null where the whole node is meant.
-- Slice: cluster, node
-- Dirty: select cluster, node from delta.intermediate__hardware__events
-- Dirty: where event_class in ('boot', 'driver_load', 'diagnostic_passed')
-- Dirty: union all select cluster, node from delta.staging__scheduler__node_states where is_out
with clearings as (
    select
        cluster,
        node,
        case event_class when 'diagnostic_passed' then gpu_index end as gpu_index,
        occurred_at as cleared_at,
        case event_class
            when 'boot' then 'boot'
            when 'driver_load' then 'driver reload'
            else 'passed diagnostic'
        end as cleared_by
    from intermediate.hardware__events
    where
        event_class in ('boot', 'driver_load')
        or event_class = 'diagnostic_passed' and gpu_index is not null
    union all
    select
        cluster,
        node,
        null,
        ended_at,
        concat('end of ', state)
    from staging.scheduler__node_states
    where ended_at is not null and is_out
)

select
    cluster,
    node,
    gpu_index,
    cleared_at,
    min(cleared_by) as cleared_by
from clearings
group by cluster, node, gpu_index, cleared_at
