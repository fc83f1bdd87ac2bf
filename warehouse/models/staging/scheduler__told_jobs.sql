-- One row per record of a job attempt or request and export that tells it, with the number of its job.
-- The lake's records beside the build: an hour's build looks for those of few jobs, and many small parts take long to
-- open. What no model asks for is left out. `job_number` is the job id without array task or component, `raw_number`
-- that of JobIDRaw where it is another.
-- Slice: export_id
with told as (
    select
        * exclude (
            line,
            is_request,
            sluid,
            db_index,
            array_tasks_pending,
            uid,
            derived_signal,
            restarts,
            is_time_limit_unlimited,
            total_cpu_seconds,
            max_rss_bytes,
            req_mem_bytes,
            req_mem_per
        ),
        coalesce(is_request, false) as is_request,
        split_part(replace(job_id, '+', '_'), '_', 1) as job_number,
        split_part(replace(job_id_raw, '+', '_'), '_', 1) as number_of_raw
    from lake.job_attempts
)

select
    * exclude (number_of_raw),
    if(number_of_raw is distinct from job_number, number_of_raw, null) as raw_number
from told
