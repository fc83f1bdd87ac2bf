-- One row per export, cluster that its records name and flags that they have: how many, and what the newest tells of.
-- Slice: export_id
with records as (
    select
        export_id,
        cluster,
        flags,
        greatest(submitted_at, started_at, ended_at) as told_at
    from lake.job_attempts
    union all
    select
        export_id,
        cluster,
        flags,
        greatest(started_at, ended_at) as told_at
    from lake.node_states
    union all
    select
        export_id,
        cluster,
        flags,
        occurred_at as told_at
    from lake.hardware_events
    union all
    -- A window may lie in the future; it is no newer than the export that tells it.
    select
        export_id,
        cluster,
        flags,
        least(started_at, collected_at) as told_at
    from lake.windows
    union all
    select
        export_id,
        cluster,
        flags,
        made_at as told_at
    from lake.annotations
    union all
    select
        export_id,
        cluster,
        flags,
        seen_at as told_at
    from lake.inventory
    union all
    select
        export_id,
        cluster,
        flags,
        occurred_at as told_at
    from lake.log_events
)

select
    export_id,
    cluster,
    flags,
    count(*) as records,
    max(told_at) as newest_record_at
from records
group by export_id, cluster, flags
