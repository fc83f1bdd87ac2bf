-- One row per format and cluster: how much was read of it, how new it is, and what had to be assumed.
-- An export's cluster is the configured one, else the one that all its records name; null where they name several.
with exports as (
    select
        exports.* exclude (cluster),
        coalesce(exports.cluster, per_export.cluster) as cluster,
        coalesce(per_export.records, 0) as records,
        per_export.newest_record_at
    from lake.exports as exports
    left join staging.exports__counts as per_export
        on exports.export_id = per_export.export_id
),

flag_counts as (
    select
        exports.source,
        exports.cluster,
        flags.flag,
        sum(flags.records)::bigint as records
    from staging.exports__flags as flags
    inner join exports
        on flags.export_id = exports.export_id
    group by exports.source, exports.cluster, flags.flag
),

flags as (
    select
        source,
        cluster,
        map(list(flag order by flag), list(records order by flag)) as flags
    from flag_counts
    group by source, cluster
),

totals as (
    select
        source,
        cluster,
        count(*) as exports,
        count(*) filter (where status = 'failed') as exports_failed,
        sum(lines)::bigint as lines,
        sum(lines_used)::bigint as lines_used,
        sum(lines_ignored)::bigint as lines_ignored,
        sum(lines_rejected)::bigint as lines_rejected,
        sum(records)::bigint as records,
        max(newest_record_at) as newest_record_at,
        max(collected_at) as newest_collected_at
    from exports
    group by source, cluster
)

select
    totals.*,
    coalesce(flags.flags, map([]::varchar[], []::bigint[])) as flags
from totals
left join flags
    on
        totals.source is not distinct from flags.source
        and totals.cluster is not distinct from flags.cluster
