-- One row per pair of consecutive attempts of one run.
-- An attempt follows the previous attempt of its own job; a job's first attempt follows the attempt of the same run
-- key that ended last before it, where that one is followed by no other. So attempts that overlap never share a run.
-- Jobs that end in one second, and start in one second, as tasks of an array do, follow each other in the order of
-- their ids.
with attempts as (
    select
        cluster,
        run_key,
        job_id_raw,
        started_at,
        ended_at,
        observed_until,
        max_gap_seconds,
        record_id,
        -- an attempt without length must not follow itself
        ended_at + if(ended_at = started_at, interval 1 microsecond, interval 0 second) as free_at,
        row_number() over job_order as job_attempt,
        lead(record_id) over job_order as requeued_as,
        lead(started_at) over job_order as requeued_at
    from intermediate.runs__tracked
    window job_order as (partition by cluster, run_key, job_id_raw order by started_at, submitted_at, record_id)
),

requeues as (
    select
        cluster,
        record_id,
        requeued_as as next_record_id,
        epoch(requeued_at)::bigint - epoch(observed_until)::bigint as gap_seconds,
        'requeue' as joined_by
    from attempts
    where requeued_at between observed_until and observed_until + to_seconds(max_gap_seconds)
),

ends as (
    select
        *,
        row_number() over (partition by cluster, run_key, free_at order by job_id_raw, started_at) as place
    from attempts
    where ended_at is not null and requeued_as is null
),

starts as (
    select
        *,
        row_number() over (partition by cluster, run_key, started_at order by job_id_raw, record_id) as place
    from attempts
    where job_attempt = 1
),

end_times as (
    select distinct
        cluster,
        run_key,
        free_at
    from ends
),

start_times as (
    select distinct
        cluster,
        run_key,
        started_at
    from starts
),

predecessors as (
    select
        start_times.cluster,
        start_times.run_key,
        start_times.started_at,
        end_times.free_at
    from start_times
    asof inner join end_times
        on
            start_times.cluster = end_times.cluster
            and start_times.run_key = end_times.run_key
            and start_times.started_at >= end_times.free_at
),

successors as (
    select
        end_times.cluster,
        end_times.run_key,
        end_times.free_at,
        start_times.started_at
    from end_times
    asof inner join start_times
        on
            end_times.cluster = start_times.cluster
            and end_times.run_key = start_times.run_key
            and end_times.free_at <= start_times.started_at
),

neighbours as (
    select predecessors.*
    from predecessors
    semi join successors
        on
            predecessors.cluster = successors.cluster
            and predecessors.run_key = successors.run_key
            and predecessors.free_at = successors.free_at
            and predecessors.started_at = successors.started_at
)

select * from requeues
union all
select
    ends.cluster,
    ends.record_id,
    starts.record_id as next_record_id,
    epoch(starts.started_at)::bigint - epoch(ends.ended_at)::bigint as gap_seconds,
    'same run key' as joined_by
from neighbours
inner join ends
    on
        neighbours.cluster = ends.cluster
        and neighbours.run_key = ends.run_key
        and neighbours.free_at = ends.free_at
inner join starts
    on
        neighbours.cluster = starts.cluster
        and neighbours.run_key = starts.run_key
        and neighbours.started_at = starts.started_at
        and ends.place = starts.place
where starts.started_at <= ends.ended_at + to_seconds(starts.max_gap_seconds)
