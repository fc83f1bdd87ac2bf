-- One row per tracked run and UTC hour in which its training log prints steps: how long steps took, and the throughput.
-- Percentiles are over printed lines: one that stands for several steps counts once, with its mean. Slow is more than
-- 1.5 times the median step of the attempt. An attempt's first step, which holds the warm-up, is left out.
-- Slice: hour_at
-- Dirty: select hour_at from delta.intermediate__training__steps
-- Dirty: union all select hour_at from intermediate.training__steps where record_id in (
-- Dirty: select record_id from delta.intermediate__training__attempts
-- Dirty: union all select record_id from delta.intermediate__runs__attempts
-- Dirty: )
with timed as (
    select
        steps.record_id,
        steps.hour_at,
        steps.step - steps.previous_step as steps,
        epoch_us(steps.ended_at) - epoch_us(steps.previous_ended_at) as microseconds,
        steps.samples - steps.previous_samples as samples
    from intermediate.training__steps as steps
    where steps.previous_step is not null
),

placed as (
    select
        attempts.cluster,
        attempts.run_id,
        attempts.run,
        timed.hour_at,
        timed.steps,
        timed.samples,
        timed.microseconds,
        timed.microseconds / timed.steps / 1000 as milliseconds,
        timed.microseconds / timed.steps > 1500000 * training.median_step_seconds as is_slow
    from timed
    inner join intermediate.runs__attempts as attempts
        on timed.record_id = attempts.record_id
    inner join intermediate.training__attempts as training
        on timed.record_id = training.record_id
),

hours as (
    select
        cluster,
        run_id,
        run,
        hour_at,
        least(sum(steps), 9223372036854775807)::bigint as steps,
        count(*) as step_lines,
        quantile_cont(milliseconds, [0.1, 0.5, 0.9, 0.99]) as quantiles,
        max(milliseconds) as max_step_milliseconds,
        least(coalesce(sum(steps) filter (where is_slow), 0), 9223372036854775807)::bigint as slow_steps,
        sum(samples) * 1000000 / nullif(sum(microseconds) filter (where samples is not null), 0) as samples_per_second
    from placed
    group by cluster, run_id, run, hour_at
)

select
    cluster,
    run_id,
    run,
    hour_at,
    steps,
    step_lines,
    round(quantiles[2])::bigint as median_step_milliseconds,
    round(quantiles[1])::bigint as p10_step_milliseconds,
    round(quantiles[3])::bigint as p90_step_milliseconds,
    round(quantiles[4])::bigint as p99_step_milliseconds,
    round(max_step_milliseconds)::bigint as max_step_milliseconds,
    round(samples_per_second, 3) as samples_per_second,
    slow_steps
from hours
