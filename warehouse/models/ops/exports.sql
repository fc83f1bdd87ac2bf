-- One row per piece of an export that was seen, with the fate of its lines.
select
    export_id,
    path,
    source,
    cluster,
    byte_offset,
    byte_length,
    sha256,
    collected_at,
    first_line,
    lines,
    lines_used,
    lines_ignored,
    lines_rejected,
    ignored_by,
    status,
    message
from lake.exports
