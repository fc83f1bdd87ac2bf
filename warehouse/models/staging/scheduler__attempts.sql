-- One row per job attempt, all jobs: the record that holds, its nulls filled from the others.
-- `observed_until` is the last instant the records vouch for: the end; while it ran, start + elapsed + suspended, or
-- the collection where Elapsed was not exported. An end before the start is flagged, and the attempt enters no run; an
-- end after the next start of the same job is clipped to it: a job runs once at a time. GPUs that no record names are
-- taken from the cluster's gpus_per_node and flagged `gpus_assumed`; so are those of a cluster whose Slurm never
-- accounts for GPUs. Its nodes are those of its `node_list`, see staging.scheduler__host_lists.
-- Slice: cluster, split_part(replace(job_id, '+', '_'), '_', 1)
-- Dirty: with recursive changed as (
-- Dirty: select cluster, split_part(replace(job_id, '+', '_'), '_', 1) as number from delta.staging__scheduler__records
-- Dirty: union select cluster, split_part(replace(job_id_raw, '+', '_'), '_', 1) from delta.staging__scheduler__records
-- Dirty: ),
-- Dirty: named as (
-- Dirty: select distinct cluster, split_part(replace(job_id, '+', '_'), '_', 1) as number,
-- Dirty: split_part(replace(job_id_raw, '+', '_'), '_', 1) as raw
-- Dirty: from staging.scheduler__records where job_id <> job_id_raw
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
-- Dirty: union select cluster, split_part(replace(job_id, '+', '_'), '_', 1) from staging.scheduler__records
-- Dirty: where cluster in (select cluster from delta.staging__scheduler__accounting)
-- Dirty: union select cluster, split_part(replace(job_id, '+', '_'), '_', 1) from staging.scheduler__records
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
-- Whole: staging.scheduler__host_lists
with records as (
    select * exclude (filled_columns)
    from staging.scheduler__records
),

several as (
    select
        cluster,
        job_id_raw,
        submitted_at,
        started_at,
        arg_min(
            columns(* exclude (cluster, job_id_raw, submitted_at, started_at, record_rank, records)),
            record_rank
        )
    from records
    where records > 1
    group by cluster, job_id_raw, submitted_at, started_at
),

-- Most attempts have one record, and merging it with itself costs as much as merging many.
merged as (
    select * from several
    union all by name
    select * exclude (record_rank, records)
    from records
    where records = 1
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
