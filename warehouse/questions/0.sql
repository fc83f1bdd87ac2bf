-- Before you ask: is what was read fresh and whole?
select
    source,
    exports,
    exports_failed as failed,
    lines_rejected as rejected,
    newest_collected_at,
    (date_diff('minute', newest_collected_at, max(newest_collected_at) over ()) / 1440)::decimal(9, 1) as days_behind,
    newest_record_at
from ops.source_freshness
order by exports_failed + lines_rejected desc, days_behind desc, source asc;
