-- One row per record of a job attempt, with the attempt's key completed.
-- A missing column is not an empty value: an export without JobIDRaw, Submit or Start gets the missing part of the key
-- from the one attempt that agrees in the rest, else it stays null. `record_rank` 1 is the record that holds: a real
-- End beats RUNNING beats PENDING; then larger Elapsed; later collected; more filled columns; smaller hash.
-- Slice: cluster, split_part(replace(job_id, '+', '_'), '_', 1)
-- Dirty: with recursive changed as (
-- Dirty: select cluster, split_part(replace(job_id, '+', '_'), '_', 1) as number from delta.lake__job_attempts
-- Dirty: union select cluster, split_part(replace(job_id_raw, '+', '_'), '_', 1) from delta.lake__job_attempts
-- Dirty: ),
-- Dirty: named as (
-- Dirty: select distinct cluster, split_part(replace(job_id, '+', '_'), '_', 1) as number,
-- Dirty: split_part(replace(job_id_raw, '+', '_'), '_', 1) as raw
-- Dirty: from lake.job_attempts where job_id <> job_id_raw
-- Dirty: ),
-- Dirty: linked as (
-- Dirty: select cluster, number, raw as other from named where number <> raw
-- Dirty: union all select cluster, raw, number from named where number <> raw
-- Dirty: ),
-- Dirty: reached as (
-- Dirty: from changed union
-- Dirty: select linked.cluster, linked.other from reached inner join linked using (cluster, number)
-- Dirty: )
-- Dirty: from reached
with records as (
    select * exclude (export_id, line, is_request)
    from lake.job_attempts
    where not coalesce(is_request, false)
),

-- An export without JobIDRaw names array tasks and het components by JobID; another may say which raw id that is.
raw_ids as (
    select
        cluster,
        job_id,
        min(job_id_raw) as job_id_raw
    from lake.job_attempts
    where job_id <> job_id_raw
    group by cluster, job_id
    having count(distinct job_id_raw) = 1
),

named as (
    select
        records.* exclude (job_id_raw),
        coalesce(raw_ids.job_id_raw, records.job_id_raw) as job_id_raw,
        list_contains(records.flags, 'submit_absent') as is_submit_absent,
        list_contains(records.flags, 'start_absent') as is_start_absent
    from records
    left join raw_ids
        on
            records.cluster = raw_ids.cluster
            and records.job_id = raw_ids.job_id
            and records.job_id_raw = records.job_id
),

whole as (
    select distinct
        cluster,
        job_id_raw,
        submitted_at,
        started_at
    from named
    where not is_submit_absent and not is_start_absent
),

by_start as (
    select
        cluster,
        job_id_raw,
        started_at,
        min(submitted_at) as submitted_at
    from whole
    group by cluster, job_id_raw, started_at
    having count(*) = 1
),

by_submit as (
    select
        cluster,
        job_id_raw,
        submitted_at,
        min(started_at) as started_at
    from whole
    group by cluster, job_id_raw, submitted_at
    having count(*) = 1
),

by_job as (
    select
        cluster,
        job_id_raw,
        min(submitted_at) as submitted_at,
        min(started_at) as started_at
    from whole
    group by cluster, job_id_raw
    having count(*) = 1
),

keyed as (
    select
        named.* exclude (submitted_at, started_at, is_submit_absent, is_start_absent),
        case
            when named.is_submit_absent and named.is_start_absent then by_job.submitted_at
            when named.is_submit_absent then by_start.submitted_at
            else named.submitted_at
        end as submitted_at,
        case
            when named.is_submit_absent and named.is_start_absent then by_job.started_at
            when named.is_start_absent then by_submit.started_at
            else named.started_at
        end as started_at
    from named
    left join by_start
        on
            named.is_submit_absent
            and not named.is_start_absent
            and named.cluster = by_start.cluster
            and named.job_id_raw = by_start.job_id_raw
            and named.started_at = by_start.started_at
    left join by_submit
        on
            named.is_start_absent
            and not named.is_submit_absent
            and named.cluster = by_submit.cluster
            and named.job_id_raw = by_submit.job_id_raw
            and named.submitted_at = by_submit.submitted_at
    left join by_job
        on
            named.is_submit_absent
            and named.is_start_absent
            and named.cluster = by_job.cluster
            and named.job_id_raw = by_job.job_id_raw
),

counted as (
    select
        *,
        count(*) over (partition by cluster, job_id_raw, submitted_at, started_at) as records
    from keyed
)

select
    *,
    row_number() over (
        partition by cluster, job_id_raw, submitted_at, started_at
        order by
            (ended_at is not null) desc,
            (state is distinct from 'PENDING') desc,
            elapsed_seconds desc nulls last,
            collected_at desc,
            filled_columns desc,
            if(records > 1, sha256(to_json(counted)), null) asc
    ) as record_rank
from counted
