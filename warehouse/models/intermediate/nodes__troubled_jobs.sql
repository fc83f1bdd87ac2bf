-- One row per job attempt, tracked or not, and node of it whose first fatal fault began before the attempt ended or,
-- while that may still count as its cause, after. What ended before that says nothing of a fault, and so a node's first
-- one calls for no old jobs.
-- Slice: record_id
-- Whole: intermediate.hardware__fatal, staging.scheduler__host_lists
-- Dirty: select record_id from delta.staging__scheduler__attempts
-- Dirty: union all select attempts.record_id from staging.scheduler__attempts as attempts
-- Dirty: inner join (
-- Dirty: select cluster, min(first_at) as first_at from (
-- Dirty: select cluster, first_at from delta.intermediate__hardware__fatal
-- Dirty: group by cluster, node, first_at having sum(_times) <> 0
-- Dirty: ) as came group by cluster
-- Dirty: ) as changed using (cluster) cross join settings.attribution as attribution
-- Dirty: where coalesce(attempts.ended_at, attempts.observed_until)
-- Dirty: >= changed.first_at - to_seconds(attribution.after_seconds)
-- Dirty: union all select record_id from staging.scheduler__attempts
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
with held as (
    select
        attempts.cluster,
        attempts.record_id,
        unnest(host_lists.nodes) as node,
        attempts.state,
        attempts.started_at,
        attempts.ended_at,
        attempts.observed_until
    from staging.scheduler__attempts as attempts
    inner join staging.scheduler__host_lists as host_lists
        on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
    where attempts.started_at is not null
),

troubled as (
    select
        fatal.cluster,
        fatal.node,
        min(fatal.first_at) - to_seconds(any_value(attribution.after_seconds)) as since
    from intermediate.hardware__fatal as fatal
    cross join settings.attribution as attribution
    group by fatal.cluster, fatal.node
)

select held.*
from held
semi join troubled
    on
        held.cluster = troubled.cluster
        and held.node = troubled.node
        and coalesce(held.ended_at, held.observed_until) >= troubled.since
