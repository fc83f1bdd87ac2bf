-- One row per cluster and node name that the scheduler uses.
select
    cluster,
    unnest(nodes) as node
from staging.scheduler__host_lists
union
select
    cluster,
    node
from staging.scheduler__node_states
