-- One row per thing a training log tells: the tracked attempt that it belongs to, or why none is known.
-- A log that names a job belongs to the attempt of that job which started last before the line, until five minutes
-- after its end; a log that names none, to the only tracked attempt of its cluster that ran then.
with names as (
    select
        cluster,
        job_id as named,
        record_id,
        started_at,
        if(ended_at is null, 'infinity'::timestamptz, ended_at + interval 5 minute) as until_at
    from intermediate.runs__tracked
    union
    select
        cluster,
        job_id_raw as named,
        record_id,
        started_at,
        if(ended_at is null, 'infinity'::timestamptz, ended_at + interval 5 minute) as until_at
    from intermediate.runs__tracked
),

-- Two attempts of one name and one start cannot be told apart.
starts as (
    select
        cluster,
        named,
        started_at as from_at,
        max(until_at) as until_at,
        count(*) as attempts,
        if(count(*) = 1, min(record_id), null) as record_id
    from names
    group by cluster, named, started_at
),

by_job as (
    select
        events.cluster,
        events.record_id as log_record_id,
        events.job_id,
        events.event,
        events.occurred_at,
        events.step,
        events.step_seconds,
        events.samples,
        if(events.occurred_at <= starts.until_at, starts.record_id, null) as record_id,
        case
            when events.occurred_at is null then 'the line has no time'
            when starts.attempts > 1 and events.occurred_at <= starts.until_at then 'several attempts of that job'
            else 'no tracked attempt of that job at that time'
        end as unmatched_reason
    from staging.training__log_events as events
    asof left join starts
        on
            events.cluster = starts.cluster
            and events.job_id = starts.named
            and events.occurred_at >= starts.from_at
    where events.job_id is not null
),

by_time as (
    select
        events.cluster,
        events.record_id as log_record_id,
        events.job_id,
        events.event,
        events.occurred_at,
        events.step,
        events.step_seconds,
        events.samples,
        if(events.occurred_at <= owners.until_at, owners.record_id, null) as record_id,
        case
            when events.occurred_at is null then 'the line has no time'
            when owners.attempts > 1 and events.occurred_at <= owners.until_at then 'several tracked attempts ran'
            else 'no tracked attempt ran'
        end as unmatched_reason
    from staging.training__log_events as events
    asof left join intermediate.training__log_owners as owners
        on events.cluster = owners.cluster and events.occurred_at >= owners.from_at
    where events.job_id is null
),

joined as (
    select * from by_job
    union all
    select * from by_time
)

select
    * exclude (unmatched_reason),
    if(record_id is null, unmatched_reason, null) as unmatched_reason
from joined
