-- One row per cluster, job (null = every job of the cluster) and rank: the node it runs on, by the latest statement.
select
    cluster,
    job_id,
    rank,
    arg_max(node, (seen_at, record_id)) as node,
    arg_max(local_rank, (seen_at, record_id)) as local_rank,
    arg_max(gpu_index, (seen_at, record_id)) as gpu_index
from staging.fleet__statements
where kind = 'rank'
group by cluster, job_id, rank
