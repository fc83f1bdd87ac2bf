-- One row per fatal fault that a run or a job outlived: that steps of the run that held the node went on, or that a job
-- which began later ran well there; both only once its last event is past.
-- Slice: cluster, node
-- Dirty: select cluster, node from delta.intermediate__hardware__fatal
-- Dirty: union all select fatal.cluster, fatal.node from intermediate.hardware__fatal as fatal
-- Dirty: inner join (
-- Dirty: select cluster, node, min(started_at) as started_at from delta.intermediate__nodes__stepped group by all
-- Dirty: ) as changed using (cluster, node) where fatal.last_at >= changed.started_at
-- Dirty: union all select fatal.cluster, fatal.node from intermediate.hardware__fatal as fatal
-- Dirty: inner join (
-- Dirty: select cluster, node, max(started_at) as started_at, min(started_at) as first_at
-- Dirty: from delta.intermediate__nodes__proven group by all
-- Dirty: ) as changed using (cluster, node)
-- Dirty: left join intermediate.hardware__outlived as told on fatal.record_id = told.record_id
-- Dirty: where fatal.last_at < changed.started_at
-- Dirty: and coalesce(told.proven_at >= changed.first_at, true)
with stepped as (
    select
        cluster,
        node,
        started_at,
        min(first_step_started_at) as first_step_started_at,
        max(last_progress_at) as last_progress_at
    from intermediate.nodes__stepped
    group by cluster, node, started_at
)

select
    fatal.cluster,
    fatal.node,
    fatal.record_id,
    fatal.first_at,
    proven.proven_at,
    if(
        stepped.last_progress_at
        >= greatest(fatal.last_at, stepped.first_step_started_at)
        + to_seconds(attribution.progress_before_seconds),
        greatest(fatal.last_at, stepped.first_step_started_at)
        + to_seconds(attribution.progress_before_seconds),
        null
    ) as outlived_at
from intermediate.hardware__fatal as fatal
asof left join intermediate.nodes__proven as proven
    on
        fatal.cluster = proven.cluster
        and fatal.node = proven.node
        and fatal.last_at < proven.started_at
asof left join stepped
    on
        fatal.cluster = stepped.cluster
        and fatal.node = stepped.node
        and fatal.last_at >= stepped.started_at
cross join settings.attribution as attribution
