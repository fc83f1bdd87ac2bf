-- Every line of an export has exactly one fate: used, ignored by a named rule, or rejected.
select
    path,
    export_id,
    lines,
    lines_used,
    lines_ignored,
    lines_rejected,
    ignored_by
from ops.exports
where status = 'loaded' and lines is distinct from lines_used + lines_ignored + lines_rejected
