-- One row per job request that never got nodes and that no attempt has superseded.
-- Slice: cluster, job_id_raw
-- Dirty: select cluster, job_id_raw from delta.lake__job_attempts where is_request
-- Dirty: union all select requests.cluster, requests.job_id_raw from staging.scheduler__requests as requests
-- Dirty: semi join delta.staging__scheduler__attempts as attempts using (cluster, job_id_raw)
-- Dirty: union all (select cluster, job_id_raw from delta.staging__scheduler__attempts
-- Dirty: group by cluster, job_id_raw, submitted_at having sum(_times) < 0)
with bare as (
    select * exclude (export_id, line)
    from lake.job_attempts
    where coalesce(is_request, false)
),

requests as (
    select
        *,
        row_number() over (
            partition by cluster, job_id_raw, submitted_at
            order by
                (ended_at is not null) desc,
                collected_at desc,
                filled_columns desc,
                sha256(to_json(bare)) asc
        ) as record_rank
    from bare
)

select requests.* exclude (record_rank, collected_at)
from requests
where
    record_rank = 1
    and not exists (
        select 1
        from staging.scheduler__attempts as attempts
        where
            attempts.cluster = requests.cluster
            and attempts.job_id_raw = requests.job_id_raw
            and attempts.submitted_at is not distinct from requests.submitted_at
    )
