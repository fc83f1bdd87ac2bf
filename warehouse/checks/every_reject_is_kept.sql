-- Every rejected line is kept in ops.rejects with its reason, and every line there belongs to a known export.
with kept as (
    select
        export_id,
        count(*) as lines_kept,
        count(*) filter (where reason is null) as without_reason
    from ops.rejects
    group by export_id
)

select
    exports.path,
    coalesce(exports.export_id, kept.export_id) as export_id,
    exports.lines_rejected,
    kept.lines_kept,
    kept.without_reason
from ops.exports as exports
full join kept
    on exports.export_id = kept.export_id
where
    exports.export_id is null
    or coalesce(exports.lines_rejected, 0) <> coalesce(kept.lines_kept, 0)
    or kept.without_reason > 0
