-- One row per export and flag of its records: how many have it.
-- Slice: export_id
with records as (
    select
        export_id,
        flags
    from lake.job_attempts
    union all
    select
        export_id,
        flags
    from lake.node_states
    union all
    select
        export_id,
        flags
    from lake.hardware_events
    union all
    select
        export_id,
        flags
    from lake.windows
    union all
    select
        export_id,
        flags
    from lake.annotations
    union all
    select
        export_id,
        flags
    from lake.inventory
    union all
    select
        export_id,
        flags
    from lake.log_events
),

flagged as (
    select
        export_id,
        unnest(flags) as flag
    from records
)

select
    export_id,
    flag,
    count(*) as records
from flagged
group by export_id, flag
