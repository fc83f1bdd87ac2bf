-- One row per node and instant at which any job, tracked or not, ended there otherwise than completed.
-- A fatal fault that came just before such an end is no background.
-- Slice: cluster, node, ended_at
select distinct
    cluster,
    node,
    ended_at
from intermediate.nodes__troubled_jobs
where ended_at is not null and state <> 'COMPLETED'
