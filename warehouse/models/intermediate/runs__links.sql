-- One row per pair of consecutive attempts of one run.
-- An attempt follows the previous attempt of its own job; a job's first attempt follows the attempt of the same run
-- key that ended last before it, where that one is followed by no other. So attempts that overlap never share a run.
with attempts as (
    select
        cluster,
        run_key,
        job_id_raw,
        submitted_at,
        started_at,
        ended_at,
        observed_until,
        max_gap_seconds,
        record_id,
        row_number() over (partition by cluster, job_id_raw order by started_at, submitted_at) as job_attempt,
        lead(record_id) over (partition by cluster, job_id_raw order by started_at, submitted_at) as requeued_as,
        lead(started_at) over (partition by cluster, job_id_raw order by started_at, submitted_at) as requeued_at
    from intermediate.runs__tracked
),

requeues as (
    select
        cluster,
        record_id,
        requeued_as as next_record_id,
        epoch(requeued_at)::bigint - epoch(observed_until)::bigint as gap_seconds,
        'requeue' as joined_by
    from attempts
    where
        requeued_as is not null
        and requeued_at <= observed_until + to_seconds(max_gap_seconds)
),

ends as (
    select
        cluster,
        run_key,
        ended_at,
        arg_min(record_id, (job_id_raw, started_at)) as record_id
    from attempts
    where ended_at is not null and requeued_as is null
    group by cluster, run_key, ended_at
),

starts as (
    select
        cluster,
        run_key,
        started_at,
        arg_min(record_id, (job_id_raw, submitted_at)) as record_id,
        arg_min(max_gap_seconds, (job_id_raw, submitted_at)) as max_gap_seconds
    from attempts
    where job_attempt = 1
    group by cluster, run_key, started_at
),

predecessors as (
    select
        starts.cluster,
        starts.record_id as next_record_id,
        ends.record_id,
        ends.ended_at,
        starts.started_at,
        starts.max_gap_seconds
    from starts
    asof inner join ends
        on
            starts.cluster = ends.cluster
            and starts.run_key = ends.run_key
            and starts.started_at >= ends.ended_at
    where ends.record_id <> starts.record_id
),

successors as (
    select
        ends.record_id,
        starts.record_id as next_record_id
    from ends
    asof inner join starts
        on
            ends.cluster = starts.cluster
            and ends.run_key = starts.run_key
            and ends.ended_at <= starts.started_at
)

select * from requeues
union all
select
    predecessors.cluster,
    predecessors.record_id,
    predecessors.next_record_id,
    epoch(predecessors.started_at)::bigint - epoch(predecessors.ended_at)::bigint as gap_seconds,
    'same run key' as joined_by
from predecessors
inner join successors
    on
        predecessors.record_id = successors.record_id
        and predecessors.next_record_id = successors.next_record_id
where predecessors.started_at <= predecessors.ended_at + to_seconds(predecessors.max_gap_seconds)
