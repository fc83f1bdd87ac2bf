-- One row per attempt and range of its steps that was done again, or is not saved yet, and the stop it is charged to.
-- The steps after the checkpoint that the next attempt loaded are lost by the stop between the two. Where a later
-- attempt goes back behind what an earlier one had loaded, the stop before it also costs steps of the attempts before.
with lineage as (
    select
        run_id,
        run_attempt,
        record_id,
        ended_at is null and not is_followed as is_unfinished,
        start_step,
        reached_step,
        next_start_step,
        max(start_step) over (partition by run_id order by run_attempt) as highest_start_step
    from intermediate.training__lineage
),

-- the stops after which the run goes on from where no attempt before had to go back to
rollbacks as (
    select *
    from lineage
    where next_start_step < highest_start_step
),

bounds as (
    select
        run_id,
        record_id,
        start_step,
        reached_step,
        record_id as charged_record_id,
        run_attempt as charged_attempt,
        next_start_step,
        is_unfinished as is_pending
    from lineage
    where reached_step is not null and next_start_step is not null
    union all
    select
        attempts.run_id,
        attempts.record_id,
        attempts.start_step,
        attempts.reached_step,
        rollbacks.record_id as charged_record_id,
        rollbacks.run_attempt as charged_attempt,
        rollbacks.next_start_step,
        false as is_pending
    from rollbacks
    inner join lineage as attempts
        on
            rollbacks.run_id = attempts.run_id
            and rollbacks.run_attempt > attempts.run_attempt
            and rollbacks.next_start_step < attempts.reached_step
),

ranges as (
    select
        *,
        coalesce(
            min(next_start_step) over (
                partition by record_id
                order by charged_attempt
                rows between unbounded preceding and 1 preceding
            ),
            reached_step
        ) as kept_before
    from bounds
)

select
    record_id,
    charged_record_id,
    is_pending,
    greatest(next_start_step, start_step) as from_step,
    least(kept_before, reached_step) as to_step
from ranges
where greatest(next_start_step, start_step) < least(kept_before, reached_step)
