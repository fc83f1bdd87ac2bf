-- One row per node of an attempt of a tracked run.
-- Slice: record_id
-- Dirty: select record_id from delta.intermediate__runs__attempts
-- Dirty: union all select attempts.record_id from intermediate.runs__attempts as attempts
-- Dirty: semi join delta.staging__scheduler__host_lists as lists using (cluster, node_list)
select
    attempts.cluster,
    attempts.record_id,
    unnest(host_lists.nodes) as node,
    attempts.started_at
from intermediate.runs__attempts as attempts
inner join staging.scheduler__host_lists as host_lists
    on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
