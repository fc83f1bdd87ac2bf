-- One row per tracked run and save of its state that a training log tells: when it began, when it was durable, what it
-- held up, and which attempt restored it first.
-- Lines without a stamp are dated from the one before: where both ends of a save carry one such time, its length is not
-- measured. A step that was done again may be saved again, by another attempt; an attempt restores the latest save
-- before it.
with saves as (
    select
        attempts.cluster,
        attempts.run_id,
        attempts.run,
        attempts.run_attempt,
        events.record_id,
        events.step,
        min(events.occurred_at) filter (where events.event = 'checkpoint_begun') as begun_at,
        min(events.occurred_at) filter (where events.event = 'checkpoint_durable') as durable_at,
        bool_or(list_contains(events.flags, 'time_derived')) as is_time_derived
    from intermediate.training__events as events
    inner join intermediate.runs__attempts as attempts
        on events.record_id = attempts.record_id
    where events.event in ('checkpoint_begun', 'checkpoint_durable') and events.step is not null
    group by attempts.cluster, attempts.run_id, attempts.run, attempts.run_attempt, events.record_id, events.step
),

restorations as (
    select
        saves.record_id,
        saves.step,
        lineage.run_attempt,
        coalesce(lineage.loaded_at, lineage.started_at) as restored_at,
        row_number() over (
            partition by lineage.record_id
            order by saves.run_attempt desc
        ) as latest
    from intermediate.training__lineage as lineage
    inner join saves
        on
            lineage.run_id = saves.run_id
            and lineage.start_step = saves.step
            and lineage.run_attempt > saves.run_attempt
    where saves.durable_at is not null
),

restored as (
    select
        record_id,
        step,
        count(*) as restorations,
        min(run_attempt) as restored_by_attempt,
        arg_min(restored_at, run_attempt) as restored_at
    from restorations
    where latest = 1
    group by record_id, step
)

select
    saves.cluster,
    saves.run_id,
    saves.run,
    saves.run_attempt,
    saves.step,
    saves.begun_at,
    saves.durable_at,
    if(
        saves.is_time_derived and saves.durable_at = saves.begun_at,
        null,
        (epoch_us(saves.durable_at) - epoch_us(saves.begun_at) + 500000) // 1000000
    ) as save_seconds,
    (marks.blocking_microseconds + 500000) // 1000000 as blocking_seconds,
    saves.durable_at is not null as is_durable,
    coalesce(restored.restorations, 0) as restorations,
    restored.restored_by_attempt,
    interruptions.interruption_id as restored_by,
    restored.restored_at
from saves
left join intermediate.ledger__marks as marks
    on saves.record_id = marks.record_id and saves.step = marks.step
left join restored
    on saves.record_id = restored.record_id and saves.step = restored.step
left join intermediate.interruptions__index as interruptions
    on saves.run_id = interruptions.run_id and restored.restored_by_attempt = interruptions.run_attempt + 1
