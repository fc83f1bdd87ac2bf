-- One row per job attempt, all jobs: the record that holds, its nulls filled from the others.
-- A missing column is not an empty value: an export without JobIDRaw, Submit or Start gets the missing part of an
-- attempt's key from the one attempt that agrees in the rest, else it stays null. Of an attempt's records a real End
-- beats RUNNING beats PENDING; then larger Elapsed; later collected; more filled columns; smaller hash.
-- `observed_until` is the last instant the records vouch for: the end; while it ran, start + elapsed + suspended, or
-- the collection where Elapsed was not exported. An end before the start is flagged, and the attempt enters no run; an
-- end after the next start of the same job is clipped to it: a job runs once at a time. GPUs that no record names are
-- taken from the cluster's gpus_per_node and flagged `gpus_assumed`; so are those of a cluster whose Slurm never
-- accounts for GPUs. Its nodes are those of its `node_list`, see staging.scheduler__host_lists.
-- Slice: cluster, job_number
-- Dirty: with recursive changed as (
-- Dirty: select cluster, job_number from delta.staging__scheduler__told_jobs
-- Dirty: union select cluster, raw_number from delta.staging__scheduler__told_jobs where raw_number is not null
-- Dirty: ),
-- Dirty: named as (
-- Dirty: select distinct cluster, job_number, raw_number from staging.scheduler__told_jobs where raw_number is not null
-- Dirty: ),
-- Dirty: linked as (
-- Dirty: select cluster, job_number, raw_number as other from named
-- Dirty: union all select cluster, raw_number, job_number from named
-- Dirty: ),
-- Dirty: reached as (
-- Dirty: from changed union
-- Dirty: select linked.cluster, linked.other from reached inner join linked using (cluster, job_number)
-- Dirty: )
-- Dirty: from reached
-- Dirty: union select cluster, job_number from staging.scheduler__told_jobs
-- Dirty: where cluster in (select cluster from delta.staging__scheduler__accounting)
-- Dirty: union select cluster, job_number from staging.scheduler__told_jobs
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
-- Whole: staging.scheduler__host_lists
with told as (
    select * exclude (export_id, is_request, raw_number)
    from staging.scheduler__told_jobs
    where not is_request
),

-- An export without JobIDRaw names array tasks and het components by JobID; another may say which raw id that is.
raw_ids as (
    select
        cluster,
        job_id,
        min(job_id_raw) as job_id_raw
    from staging.scheduler__told_jobs
    where job_id <> job_id_raw
    group by cluster, job_id
    having count(distinct job_id_raw) = 1
),

named as (
    select
        told.* exclude (job_id_raw),
        coalesce(raw_ids.job_id_raw, told.job_id_raw) as job_id_raw,
        list_contains(told.flags, 'submit_absent') as is_submit_absent,
        list_contains(told.flags, 'start_absent') as is_start_absent
    from told
    left join raw_ids
        on
            told.cluster = raw_ids.cluster
            and told.job_id = raw_ids.job_id
            and told.job_id_raw = told.job_id
),

keys as (
    select distinct
        cluster,
        job_id_raw,
        submitted_at,
        started_at,
        is_submit_absent,
        is_start_absent
    from named
),

-- Keys that lack a part, each with the only whole one that agrees in the rest.
completed as (
    select
        lacking.cluster,
        lacking.job_id_raw,
        lacking.submitted_at,
        lacking.started_at,
        lacking.is_submit_absent,
        lacking.is_start_absent,
        min(whole.submitted_at) as whole_submitted_at,
        min(whole.started_at) as whole_started_at
    from keys as lacking
    inner join keys as whole
        on
            lacking.cluster = whole.cluster
            and lacking.job_id_raw = whole.job_id_raw
            and (lacking.is_submit_absent or lacking.submitted_at = whole.submitted_at)
            and (lacking.is_start_absent or lacking.started_at = whole.started_at)
    where
        (lacking.is_submit_absent or lacking.is_start_absent)
        and not whole.is_submit_absent
        and not whole.is_start_absent
    group by all
    having count(*) = 1
),

keyed as (
    select
        named.* exclude (submitted_at, started_at, is_submit_absent, is_start_absent),
        if(named.is_submit_absent, completed.whole_submitted_at, named.submitted_at) as submitted_at,
        if(named.is_start_absent, completed.whole_started_at, named.started_at) as started_at
    from named
    left join completed
        on
            named.cluster = completed.cluster
            and named.job_id_raw = completed.job_id_raw
            and named.submitted_at is not distinct from completed.submitted_at
            and named.started_at is not distinct from completed.started_at
            and named.is_submit_absent = completed.is_submit_absent
            and named.is_start_absent = completed.is_start_absent
),

shared as (
    select
        cluster,
        job_id_raw,
        submitted_at,
        started_at
    from keyed
    group by all
    having count(*) > 1
),

ranked as (
    select
        * exclude (filled_columns),
        row_number() over (
            partition by cluster, job_id_raw, submitted_at, started_at
            order by
                (ended_at is not null) desc,
                (state is distinct from 'PENDING') desc,
                elapsed_seconds desc nulls last,
                collected_at desc,
                filled_columns desc,
                sha256(to_json(keyed)) asc
        ) as record_rank
    from keyed
    semi join shared
        on
            keyed.cluster is not distinct from shared.cluster
            and keyed.job_id_raw is not distinct from shared.job_id_raw
            and keyed.submitted_at is not distinct from shared.submitted_at
            and keyed.started_at is not distinct from shared.started_at
),

-- Most attempts have one record, and merging it with itself costs as much as merging many.
merged as (
    select
        cluster,
        job_id_raw,
        submitted_at,
        started_at,
        arg_min(columns(* exclude (cluster, job_id_raw, submitted_at, started_at, record_rank)), record_rank)
    from ranked
    group by cluster, job_id_raw, submitted_at, started_at
    union all by name
    select * exclude (filled_columns)
    from keyed
    anti join shared
        on
            keyed.cluster is not distinct from shared.cluster
            and keyed.job_id_raw is not distinct from shared.job_id_raw
            and keyed.submitted_at is not distinct from shared.submitted_at
            and keyed.started_at is not distinct from shared.started_at
),

sized as (
    select
        merged.* exclude (gpus, node_count, flags, collected_at),
        merged.collected_at as last_seen_at,
        coalesce(merged.ended_at < merged.started_at, false) as is_reversed,
        host_lists.nodes is not null as is_placed,
        coalesce(merged.node_count, len(host_lists.nodes)) as nodes,
        if(
            (merged.gpus is null or not accounting.is_counting_gpus) and clusters.gpus_per_node is not null,
            coalesce(merged.node_count, len(host_lists.nodes)) * clusters.gpus_per_node,
            merged.gpus
        ) as gpus,
        (merged.gpus is null or not accounting.is_counting_gpus) and clusters.gpus_per_node is not null
            as is_gpus_assumed,
        list_filter(
            coalesce(merged.flags, []),
            lambda f: not (
                (f = 'submit_absent' and merged.submitted_at is not null)
                or (f in ('start_absent', 'time_missing') and merged.started_at is not null)
            )
        ) as flags
    from merged
    left join staging.scheduler__host_lists as host_lists
        on merged.cluster = host_lists.cluster and merged.node_list = host_lists.node_list
    left join settings.clusters as clusters
        on merged.cluster = clusters.cluster
    left join staging.scheduler__accounting as accounting
        on merged.cluster = accounting.cluster
),

observed as (
    select
        sized.* exclude (is_gpus_assumed, is_reversed, last_seen_at),
        is_gpus_assumed,
        is_reversed,
        case
            when is_reversed then null
            when ended_at is not null then ended_at
            when elapsed_seconds is not null
                then started_at + to_seconds(elapsed_seconds + coalesce(suspended_seconds, 0))
            when state in ('RUNNING', 'SUSPENDED', 'COMPLETING', 'CONFIGURING', 'RESIZING', 'STOPPED')
                then greatest(last_seen_at, started_at)
            else started_at
        end as seen_until,
        lead(started_at) over (
            partition by cluster, job_id_raw, "user"
            order by started_at, submitted_at
        ) as next_started_at,
        row_number() over (
            partition by cluster, job_id_raw
            order by started_at nulls first, submitted_at nulls first
        ) as attempt
    from sized
)

select
    observed.* exclude (flags, is_gpus_assumed, is_reversed, seen_until, next_started_at, ended_at),
    least(ended_at, coalesce(next_started_at, ended_at)) as ended_at,
    least(seen_until, coalesce(next_started_at, seen_until)) as observed_until,
    list_sort(
        list_distinct(
            list_concat(
                flags,
                if(is_gpus_assumed, ['gpus_assumed'], []),
                if(is_reversed, ['end_before_start'], []),
                if(not is_reversed and ended_at > next_started_at, ['end_clipped'], [])
            )
        )
    ) as flags
from observed
