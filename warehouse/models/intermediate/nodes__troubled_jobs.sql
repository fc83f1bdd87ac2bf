-- One row per job attempt, tracked or not, and node of it that ever had a fatal event.
-- Slice: record_id
-- Whole: intermediate.nodes__troubled, staging.scheduler__host_lists
-- Dirty: select record_id from delta.staging__scheduler__attempts
-- Dirty: union all select record_id from staging.scheduler__attempts
-- Dirty: where cluster in (select cluster from delta.intermediate__nodes__troubled)
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
)

select held.*
from held
semi join intermediate.nodes__troubled as troubled
    on held.cluster = troubled.cluster and held.node = troubled.node
