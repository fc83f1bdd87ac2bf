-- Does the step time swing with the hour?
with by_hour as (
    select
        run_id,
        run,
        extract('hour' from hour_at at time zone 'UTC') as hour_utc,
        sum(steps) as steps,
        sum(slow_steps) as slow_steps,
        sum(median_step_milliseconds * steps) as milliseconds
    from marts.step_times
    group by run_id, run, hour_utc
),

compared as (
    select
        *,
        milliseconds / steps as step_milliseconds,
        sum(milliseconds) over (partition by run_id) / sum(steps) over (partition by run_id) as mean_milliseconds
    from by_hour
    where steps > 0
)

select
    run,
    hour_utc,
    steps,
    step_milliseconds::bigint as step_milliseconds,
    (100 * (step_milliseconds / mean_milliseconds - 1))::decimal(9, 2) as percent_above_mean,
    slow_steps
from compared
order by run, run_id, hour_utc;
