-- One row per place where a record stands: the same record may stand in many exports.
-- Steps of training logs are left out: nothing cites one, and they are most of all records.
-- Slice: export_id
with records as (
    select
        record_id,
        'job_attempts' as record_table,
        export_id,
        line
    from lake.job_attempts
    union all
    select
        record_id,
        'node_states' as record_table,
        export_id,
        line
    from lake.node_states
    union all
    select
        record_id,
        'hardware_events' as record_table,
        export_id,
        line
    from lake.hardware_events
    union all
    select
        record_id,
        'windows' as record_table,
        export_id,
        line
    from lake.windows
    union all
    select
        record_id,
        'annotations' as record_table,
        export_id,
        line
    from lake.annotations
    union all
    select
        record_id,
        'inventory' as record_table,
        export_id,
        line
    from lake.inventory
    union all
    select
        record_id,
        'log_events' as record_table,
        export_id,
        line
    from lake.log_events
    where event <> 'step'
)

select
    records.record_id,
    records.record_table,
    exports.path,
    records.line,
    exports.source,
    records.export_id
from records
left join lake.exports as exports
    on records.export_id = exports.export_id
