-- One row per measured attempt and step at which a save was made, or lost work begins: when that step ended, and how
-- much longer the step that holds the save took than the median step.
-- Between two printed steps time is split in proportion. Several saves between two printed steps share the excess.
-- Slice: record_id
with saves as (
    select
        record_id,
        step,
        true as is_save
    from intermediate.training__events
    where event in ('checkpoint_begun', 'checkpoint_durable') and step is not null
    union all
    select
        record_id,
        from_step as step,
        false as is_save
    from intermediate.ledger__losses
),

wanted as (
    select
        record_id,
        step,
        bool_or(is_save) as is_save
    from saves
    group by record_id, step
),

placed as (
    select
        attempts.record_id,
        attempts.first_step_started_at,
        attempts.start_step,
        attempts.last_step,
        attempts.reached_step,
        attempts.last_step_at,
        attempts.last_progress_at,
        attempts.median_step_seconds,
        wanted.step,
        wanted.is_save,
        steps.step as next_step,
        steps.ended_at as next_ended_at,
        steps.previous_step,
        steps.previous_ended_at
    from wanted
    inner join intermediate.training__attempts as attempts
        on wanted.record_id = attempts.record_id
    asof left join intermediate.training__steps as steps
        on wanted.record_id = steps.record_id and wanted.step < steps.step
    where attempts.has_steps
),

bounded as (
    select
        record_id,
        step,
        is_save,
        next_step,
        case when next_step is null then last_step else coalesce(previous_step, start_step) end as lower_step,
        coalesce(next_step, reached_step) as upper_step,
        case when next_step is null then last_step_at else coalesce(previous_ended_at, first_step_started_at) end
            as lower_at,
        coalesce(next_ended_at, last_progress_at) as upper_at,
        -- the first step holds the warm-up
        if(
            is_save and previous_step is not null,
            greatest(
                epoch_us(next_ended_at) - epoch_us(previous_ended_at)
                - least((next_step - previous_step) * median_step_seconds * 1000000, 1e15)::bigint,
                0
            ),
            0
        ) as excess_us
    from placed
),

counted as (
    select
        *,
        max(excess_us) over printed as excess_of_all_us,
        greatest(sum(is_save::int) over printed, 1) as saves,
        coalesce(sum(is_save::int) over earlier, 0) as saves_before,
        coalesce((step - lower_step) / nullif(upper_step - lower_step, 0), 0) as part
    from bounded
    window
        printed as (partition by record_id, next_step),
        earlier as (
            partition by record_id, next_step
            order by step
            rows between unbounded preceding and 1 preceding
        )
)

select
    record_id,
    step,
    is_save,
    lower_at
    + to_microseconds(
        (greatest(least(part, 1), 0) * (epoch_us(upper_at) - epoch_us(lower_at) - excess_of_all_us))::bigint
        + (saves_before * (excess_of_all_us // saves))::bigint
    ) as ended_at,
    if(is_save, excess_of_all_us // saves, 0)::bigint as blocking_microseconds
from counted
