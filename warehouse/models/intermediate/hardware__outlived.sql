-- One row per fatal fault that a run or a job outlived: that steps of the run that held the node went on, or that a job
-- which began later ran well there; both only once its last event is past.
-- Slice: cluster, node
select
    fatal.cluster,
    fatal.node,
    fatal.record_id,
    proven.proven_at,
    if(
        stepped.last_progress_at
        >= greatest(fatal.last_at, stepped.first_step_started_at)
        + to_seconds(attribution.progress_before_seconds),
        greatest(fatal.last_at, stepped.first_step_started_at)
        + to_seconds(attribution.progress_before_seconds),
        null
    ) as outlived_at
from intermediate.hardware__coalesced as fatal
asof left join intermediate.nodes__proven as proven
    on
        fatal.cluster = proven.cluster
        and fatal.node = proven.node
        and fatal.last_at < proven.started_at
asof left join intermediate.nodes__stepped as stepped
    on
        fatal.cluster = stepped.cluster
        and fatal.node = stepped.node
        and fatal.last_at >= stepped.started_at
cross join settings.attribution as attribution
where fatal.is_fatal
