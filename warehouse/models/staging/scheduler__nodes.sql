-- One row per cluster and node name that the scheduler uses.
-- Slice: cluster
-- Dirty: with named as (
-- Dirty: select cluster, unnest(nodes) as node, _times from delta.staging__scheduler__host_lists
-- Dirty: union all select cluster, node, _times from delta.staging__scheduler__node_states
-- Dirty: ),
-- Dirty: told as (select cluster, node, sum(_times) as times from named group by cluster, node)
-- Dirty: select told.cluster from told left join staging.scheduler__nodes as known using (cluster, node)
-- Dirty: where told.times < 0 or known.node is null
select
    cluster,
    unnest(nodes) as node
from staging.scheduler__host_lists
union
select
    cluster,
    node
from staging.scheduler__node_states
