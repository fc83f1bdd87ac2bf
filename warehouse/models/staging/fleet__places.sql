-- One row per cluster and node: rack, pod and switch by the latest statement that names one.
select
    cluster,
    node,
    arg_max(rack, (seen_at, record_id)) as rack,
    arg_max(pod, (seen_at, record_id)) as pod,
    arg_max(switch, (seen_at, record_id)) as switch,
    arg_max(model, (seen_at, record_id)) as model,
    arg_max(serial, (seen_at, record_id)) as serial
from staging.fleet__statements
where kind = 'node'
group by cluster, node
