-- One row per line of an export that could not be read, and why.
select
    exports.path,
    rejects.line,
    rejects.reason,
    rejects.text,
    rejects.byte_length,
    rejects.byte_offset,
    rejects.sha256,
    exports.source,
    exports.cluster,
    exports.collected_at,
    rejects.export_id
from lake.rejects as rejects
left join lake.exports as exports
    on rejects.export_id = exports.export_id
