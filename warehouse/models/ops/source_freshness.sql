-- One row per format and cluster: how much was read of it, how new it is, and what had to be assumed.
-- An export's cluster is the configured one, else the one that all its records name; null where they name several.
with per_export as (
    select
        export_id,
        sum(records)::bigint as records,
        if(min(cluster) = max(cluster), min(cluster), null) as cluster,
        max(newest_record_at) as newest_record_at
    from staging.exports__records
    group by export_id
),

exports as (
    select
        exports.* exclude (cluster),
        coalesce(exports.cluster, per_export.cluster) as cluster,
        coalesce(per_export.records, 0) as records,
        per_export.newest_record_at
    from lake.exports as exports
    left join per_export
        on exports.export_id = per_export.export_id
),

flagged as (
    select
        export_id,
        unnest(flags) as flag,
        records
    from staging.exports__records
),

flag_counts as (
    select
        exports.source,
        exports.cluster,
        flagged.flag,
        sum(flagged.records)::bigint as records
    from flagged
    inner join exports
        on flagged.export_id = exports.export_id
    group by exports.source, exports.cluster, flagged.flag
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
