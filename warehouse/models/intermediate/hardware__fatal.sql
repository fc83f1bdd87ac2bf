-- One row per fatal fault, with when it began and when it was last told.
select
    cluster,
    node,
    record_id,
    first_at,
    last_at
from intermediate.hardware__coalesced
where is_fatal
