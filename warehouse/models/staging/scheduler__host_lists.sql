-- One row per distinct compressed host list of a cluster, with its hosts in order.
-- Slice: cluster, node_list
select
    cluster,
    node_list,
    arg_min(nodes, export_id) as nodes
from lake.host_lists
group by cluster, node_list
