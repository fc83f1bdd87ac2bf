-- One row per cluster: whether its Slurm ever accounts for GPUs.
select
    cluster,
    bool_or(gpus > 0) as is_counting_gpus
from staging.scheduler__told_jobs
where not is_request
group by cluster
