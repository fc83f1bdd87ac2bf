-- One row per attempt of a tracked run, or piece of one, that its training log measures: when it began its first step,
-- when it stopped making progress, its pace, what it loaded and saved, how many errors it tells.
-- The first step began before the line that ends it by the iterations since the start, each as long as that line says,
-- else as the median step; not before the start or load that the log tells. Where the log begins late, the configured
-- restart overhead is assumed. Without any step, all its time is that of starting. No span is longer than 1e12 ms, some
-- 31 years: whatever number a log tells, the sum is an instant.
with timed as (
    select
        *,
        coalesce(first_step_seconds, median_step_seconds) as first_step_length,
        is_begun_late or coalesce(first_step_seconds, median_step_seconds) is null as is_start_assumed
    from intermediate.training__lineage
    where is_measured
)

select
    cluster,
    run_id,
    run_attempt,
    record_id,
    has_steps,
    loaded_step,
    start_step,
    first_step,
    last_step,
    reached_step,
    durable_step,
    next_start_step,
    is_loss_unknown,
    reached_step - start_step as steps,
    begun_at,
    first_line_at,
    is_begun_late,
    coalesce(has_steps and is_start_assumed, false) as is_start_assumed,
    if(
        has_steps,
        greatest(
            started_at,
            least(
                first_line_at,
                observed_until,
                if(
                    is_start_assumed,
                    least(
                        started_at + to_seconds(restart_overhead_seconds),
                        first_line_at
                        - to_milliseconds(least(coalesce(1000 * logging_steps * first_step_length, 0), 1e12)::bigint)
                    ),
                    greatest(
                        begun_at,
                        first_line_at
                        - to_milliseconds(least(1000 * first_step_length * (first_step - start_step), 1e12)::bigint)
                    )
                )
            )
        ),
        null
    ) as first_step_started_at,
    -- least() of a null is the other: what was not seen would have been so at the end
    if(has_steps, least(last_step_at, observed_until), null) as last_step_at,
    if(last_durable_at is null, null, least(last_durable_at, observed_until)) as last_durable_at,
    if(
        has_steps,
        least(
            last_step_at
            + to_milliseconds(
                least(coalesce(1000 * median_step_seconds * (reached_step - last_step), 0), 1e12)::bigint
            ),
            observed_until
        ),
        null
    ) as last_progress_at,
    median_step_seconds,
    logging_steps,
    logging_steps * median_step_seconds as median_logging_seconds,
    errors,
    first_error_at,
    -- nothing that a later attempt could build on
    coalesce(not has_steps or next_start_step <= start_step, false) as is_without_progress
from timed
