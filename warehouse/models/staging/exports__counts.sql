-- One row per export that made records: how many, the cluster that all of them name, and what the newest tells of.
-- Slice: export_id
with records as (
    select
        export_id,
        cluster,
        greatest(submitted_at, started_at, ended_at) as told_at
    from lake.job_attempts
    union all
    select
        export_id,
        cluster,
        greatest(started_at, ended_at) as told_at
    from lake.node_states
    union all
    select
        export_id,
        cluster,
        occurred_at as told_at
    from lake.hardware_events
    union all
    -- A window may lie in the future; it is no newer than the export that tells it.
    select
        export_id,
        cluster,
        least(started_at, collected_at) as told_at
    from lake.windows
    union all
    select
        export_id,
        cluster,
        made_at as told_at
    from lake.annotations
    union all
    select
        export_id,
        cluster,
        seen_at as told_at
    from lake.inventory
    union all
    select
        export_id,
        cluster,
        occurred_at as told_at
    from lake.log_events
)

select
    export_id,
    count(*) as records,
    if(count(distinct cluster) = 1, min(cluster), null) as cluster,
    max(told_at) as newest_record_at
from records
group by export_id
