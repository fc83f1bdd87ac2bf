-- One row per cluster, UTC day, partition and account: jobs started, ended and running, and the hours they used.
-- A job is split at midnight; its wait (submission to start) is booked on the day it started. Requests that never got
-- nodes count nowhere. Suspended time is no use: it is taken out evenly over the job's span.
with jobs as (
    select
        cluster,
        "partition",
        account,
        started_at at time zone 'UTC' as start_at,
        observed_until at time zone 'UTC' as stop_at,
        ended_at is not null as is_ended,
        greatest(epoch(started_at)::bigint - epoch(submitted_at)::bigint, 0) as wait_seconds,
        epoch(observed_until)::bigint - epoch(started_at)::bigint as span_seconds,
        least(
            coalesce(suspended_seconds, 0), epoch(observed_until)::bigint - epoch(started_at)::bigint
        ) as suspended_seconds,
        cpus,
        nodes,
        gpus
    from staging.scheduler__attempts
    where started_at is not null and observed_until >= started_at
),

days as (
    select
        *,
        unnest(range(date_trunc('day', start_at), stop_at + interval 1 microsecond, interval 1 day)) as day_at
    from jobs
),

shares as (
    select
        *,
        start_at >= day_at as is_start_day,
        is_ended and stop_at < day_at + interval 1 day as is_end_day,
        (
            epoch(least(stop_at, day_at + interval 1 day))::bigint - epoch(greatest(start_at, day_at))::bigint
        )
        * if(span_seconds > 0 and suspended_seconds > 0, 1 - suspended_seconds / span_seconds, 1) as seconds
    from days
)

select
    cluster,
    day_at::date as day,
    "partition",
    account,
    count(*) filter (where is_start_day) as jobs_started,
    count(*) filter (where is_end_day) as jobs_ended,
    count(*) as jobs_running,
    round(sum(seconds) / 3600, 6) as wall_hours,
    round(sum(seconds * cpus) / 3600, 6) as cpu_hours,
    round(sum(seconds * nodes) / 3600, 6) as node_hours,
    round(coalesce(sum(seconds * gpus), 0) / 3600, 6) as gpu_hours,
    round(coalesce(sum(wait_seconds) filter (where is_start_day), 0) / 3600, 6) as wait_hours
from shares
group by cluster, day_at, "partition", account
