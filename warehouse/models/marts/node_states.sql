-- One row per node and interval out of normal service, with the reason given.
select
    cluster,
    node,
    state,
    state_raw,
    started_at,
    ended_at,
    observed_until,
    is_open,
    epoch(observed_until)::bigint - epoch(started_at)::bigint as seconds,
    reason,
    set_by,
    set_by_uid,
    record_id,
    flags
from staging.scheduler__node_states
