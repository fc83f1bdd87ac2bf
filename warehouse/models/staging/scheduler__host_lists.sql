-- One row per distinct compressed host list of a cluster, with its hosts in order.
-- Slice: cluster, node_list
-- Dirty: select told.cluster, told.node_list from delta.lake__host_lists as told
-- Dirty: left join staging.scheduler__host_lists as known using (cluster, node_list)
-- Dirty: where told._times < 0 or told.nodes is distinct from known.nodes
select
    cluster,
    node_list,
    arg_min(nodes, export_id) as nodes
from lake.host_lists
group by cluster, node_list
