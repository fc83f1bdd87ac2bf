-- One row per thing a training log tells: the tracked attempt that it belongs to, or why none is known.
-- A log that names a job belongs to the attempt of that job which started last before the line, until five minutes
-- after its end; a log that names none, to the only tracked attempt of its cluster that ran then.
-- Settles: occurred_at
-- Dirty: select occurred_at from delta.staging__training__log_events
-- Dirty: union all select started_at from delta.intermediate__runs__tracked
-- Dirty: union all select from_at from delta.intermediate__training__log_owners
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

owned as (
    select
        events.*,
        starts.record_id as owner_id,
        starts.until_at,
        starts.attempts
    from staging.training__log_events as events
    asof left join starts
        on
            events.cluster = starts.cluster
            and events.job_id = starts.named
            and events.occurred_at >= starts.from_at
    where events.job_id is not null
    union all
    select
        events.*,
        owners.record_id as owner_id,
        owners.until_at,
        owners.attempts
    from staging.training__log_events as events
    asof left join intermediate.training__log_owners as owners
        on events.cluster = owners.cluster and events.occurred_at >= owners.from_at
    where events.job_id is null
),

matched as (
    select
        cluster,
        record_id as log_record_id,
        job_id,
        event,
        occurred_at,
        step,
        step_seconds,
        samples,
        if(occurred_at <= until_at, owner_id, null) as record_id,
        case
            when occurred_at is null then 'the line has no time'
            when attempts > 1 and occurred_at <= until_at
                then if(job_id is null, 'several tracked attempts ran', 'several attempts of that job')
            when job_id is null then 'no tracked attempt ran'
            else 'no tracked attempt of that job at that time'
        end as unmatched_reason
    from owned
)

select
    * exclude (unmatched_reason),
    if(record_id is null, unmatched_reason, null) as unmatched_reason
from matched
