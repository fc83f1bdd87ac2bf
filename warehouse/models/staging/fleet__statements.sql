-- One row per statement about the fleet and time it was made for, with the scheduler's spelling of the node.
-- A listing without times speaks for the time it was collected: read twice, it is one record at two times.
select distinct
    told.cluster,
    told.record_id,
    told.kind,
    if(as_listed.node is null and short.node is not null, short.node, told.node) as node,
    told.gpu_index,
    told.device,
    told.uuid,
    told.serial,
    coalesce(told.uuid, told.serial) as gpu,
    told.model,
    told.job_id,
    told.rank,
    told.local_rank,
    told.rack,
    told.pod,
    told.switch,
    told.seen_at
from lake.inventory as told
left join staging.scheduler__nodes as as_listed
    on told.cluster = as_listed.cluster and told.node = as_listed.node
left join staging.scheduler__short_names as short
    on told.cluster = short.cluster and lower(split_part(told.node, '.', 1)) = short.short_name
