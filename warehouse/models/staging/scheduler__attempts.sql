-- One row per job attempt, all jobs: the record that holds, its nulls filled from the others.
-- `observed_until` is the last instant the records vouch for: the end, or start + elapsed + suspended while it ran.
-- GPUs that no record names are taken from the cluster's gpus_per_node and flagged `gpus_assumed`.
with records as (
    select * exclude (collected_at, filled_columns)
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
        merged.* exclude (gpus, node_count, flags),
        host_lists.nodes as node_names,
        coalesce(merged.node_count, len(host_lists.nodes)) as nodes,
        coalesce(
            merged.gpus, coalesce(merged.node_count, len(host_lists.nodes)) * clusters.gpus_per_node
        ) as gpus,
        merged.gpus is null and clusters.gpus_per_node is not null as is_gpus_assumed,
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
)

select
    sized.* exclude (flags, is_gpus_assumed),
    list_sort(
        list_distinct(if(is_gpus_assumed, list_append(flags, 'gpus_assumed'), flags))
    ) as flags,
    coalesce(
        ended_at,
        started_at + to_seconds(coalesce(elapsed_seconds, 0) + coalesce(suspended_seconds, 0))
    ) as observed_until,
    row_number() over (
        partition by cluster, job_id_raw
        order by started_at nulls first, submitted_at nulls first
    ) as attempt
from sized
