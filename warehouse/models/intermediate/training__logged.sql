-- One row per attempt, or piece of it, of which a training log tells: its steps, its pace, its checkpoints, its errors.
-- What it loaded is the last checkpoint loaded before its first step. Steps that hold a save tell nothing of its pace.
-- Slice: split_part(record_id, '/', 1)
with saves as (
    select distinct
        record_id,
        step
    from intermediate.training__events
    where event in ('checkpoint_begun', 'checkpoint_durable') and step is not null
),

steps as (
    select
        steps.record_id,
        min(steps.step) as first_step,
        max(steps.step) as last_step,
        min(steps.ended_at) as first_line_at,
        max(steps.ended_at) as last_step_at,
        any_value(steps.step_seconds) filter (where steps.previous_step is null) as first_step_seconds,
        median(steps.seconds_each) as median_any_seconds,
        median(steps.seconds_each) filter (where saves.step is null) as median_free_seconds,
        count(steps.seconds_each) filter (where saves.step is null) as free_lines,
        (max(steps.step) filter (where steps.is_printed) - min(steps.step))
        / nullif(count(*) filter (where steps.is_printed) - 1, 0) as logging_steps
    from intermediate.training__steps as steps
    left join saves
        on steps.record_id = saves.record_id and steps.previous_step = saves.step
    group by steps.record_id
),

told as (
    select
        events.record_id,
        max(events.occurred_at) filter (
            where events.event in ('start', 'checkpoint_loaded')
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as begun_at,
        arg_max(events.step, (events.occurred_at, events.step)) filter (
            where events.event = 'checkpoint_loaded'
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as loaded_step,
        max(events.occurred_at) filter (
            where events.event = 'checkpoint_loaded'
            and (steps.first_line_at is null or events.occurred_at <= steps.first_line_at)
        ) as loaded_at,
        max(events.step) filter (where events.event = 'checkpoint_durable') as durable_step,
        max(events.occurred_at) filter (where events.event = 'checkpoint_durable') as last_durable_at,
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
