-- One row per node that jobs held: how many attempts, and for how long, all jobs and those of tracked runs.
with held as (
    select
        attempts.cluster,
        unnest(host_lists.nodes) as node,
        epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint as seconds,
        attempts.record_id
    from staging.scheduler__attempts as attempts
    inner join staging.scheduler__host_lists as host_lists
        on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
    where attempts.started_at is not null
),

exposure as (
    select
        held.cluster,
        held.node,
        count(*) as attempts,
        sum(held.seconds)::bigint as job_seconds,
        coalesce(sum(held.seconds) filter (where tracked.record_id is not null), 0)::bigint as tracked_seconds
    from held
    left join intermediate.runs__tracked as tracked
        on held.record_id = tracked.record_id
    group by held.cluster, held.node
)

select * from exposure
