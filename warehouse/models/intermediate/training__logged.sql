-- One row per attempt, or piece of it, of which a training log tells: its steps, its pace, its checkpoints, its errors.
-- What it loaded is the last checkpoint loaded before its first step.
with steps as (
    select
        record_id,
        min(step) as first_step,
        max(step) as last_step,
        min(ended_at) as first_line_at,
        max(ended_at) as last_step_at,
        any_value(step_seconds) filter (where previous_step is null) as first_step_seconds,
        median(epoch(ended_at - previous_ended_at) / (step - previous_step)) as median_step_seconds,
        (max(step) filter (where is_printed) - min(step))
        / nullif(count(*) filter (where is_printed) - 1, 0) as logging_steps
    from intermediate.training__steps
    group by record_id
),

told as (
    select
        events.record_id,
        max(events.occurred_at) filter (
            where events.event in ('start', 'checkpoint_loaded')
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as begun_at,
        arg_max(events.step, events.occurred_at) filter (
            where events.event = 'checkpoint_loaded'
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as loaded_step,
        max(events.occurred_at) filter (
            where events.event = 'checkpoint_loaded'
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as loaded_at,
        max(events.step) filter (where events.event = 'checkpoint_durable') as durable_step,
        count(*) filter (where events.event like 'checkpoint_%') as checkpoint_events,
        count(*) filter (where events.event in ('nccl_timeout', 'nccl_error', 'error', 'loss_not_finite')) as errors,
        min(events.occurred_at) filter (
            where events.event in ('nccl_timeout', 'nccl_error', 'error', 'loss_not_finite')
        ) as first_error_at
    from intermediate.training__events as events
    left join steps
        on events.record_id = steps.record_id
    group by events.record_id
)

select
    coalesce(steps.record_id, told.record_id) as record_id,
    steps.* exclude (record_id),
    told.* exclude (record_id)
from steps
full join told
    on steps.record_id = told.record_id
