-- One row per attempt of a run of which training logs tell: from which step it began, and from which step the run went
-- on after it.
-- `start_step` is the checkpoint that it loaded, by its log; else the last durable one that the first printed step may
-- follow; else the printed step before that. `next_start_step` is where the next attempt began; if none did, or no log
-- shows it, the last durable checkpoint; null = all that it did is kept, or `is_loss_unknown`.
with attempts as (
    select
        attempts.cluster,
        attempts.run_id,
        attempts.run_attempt,
        attempts.record_id,
        attempts.started_at,
        attempts.ended_at,
        attempts.observed_until,
        coalesce(attempts.state, '') as state,
        attempts.restart_overhead_seconds,
        log.* exclude (record_id),
        log.first_step is not null as has_steps,
        bool_or(log.first_step is not null) over run as is_run_logged,
        coalesce(sum(log.checkpoint_events) over run, 0) > 0 as has_checkpoints,
        median(log.median_free_seconds) over run as run_step_seconds,
        median(log.logging_steps) over run as run_logging_steps,
        max(greatest(log.last_step, log.durable_step, log.loaded_step)) over earlier as seen_before,
        max(log.durable_step) over earlier as durable_before
    from intermediate.runs__attempts as attempts
    left join intermediate.training__logged as log
        on attempts.record_id = log.record_id
    window
        run as (partition by attempts.run_id),
        earlier as (
            partition by attempts.run_id
            order by attempts.run_attempt
            rows between unbounded preceding and 1 preceding
        )
),

paced as (
    select
        * exclude (
            median_any_seconds,
            median_free_seconds,
            free_lines,
            logging_steps,
            run_step_seconds,
            run_logging_steps,
            is_run_logged
        ),
        -- a few lines are no measure where the run has more
        coalesce(
            if(free_lines >= 3, median_free_seconds, null), run_step_seconds, median_free_seconds, median_any_seconds
        ) as median_step_seconds,
        coalesce(logging_steps, run_logging_steps, 1) as logging_steps,
        has_steps or begun_at is not null as is_measured,
        greatest(
            first_step - least(round(coalesce(logging_steps, run_logging_steps, 1)), 1e18)::bigint, 0
        ) as printed_before
    from attempts
    where is_run_logged
),

begun as (
    select
        *,
        -- a log without a beginning, whose first step follows none that the run is known to have done
        coalesce(
            loaded_step is null and begun_at is null and printed_before > coalesce(seen_before, 0), false
        ) as is_begun_late,
        case
            when not has_steps then loaded_step
            when loaded_step < first_step then loaded_step
            when durable_before >= printed_before and durable_before < first_step then durable_before
            when begun_at is null and printed_before > coalesce(seen_before, 0)
                then coalesce(durable_before, seen_before, 0)
            else printed_before
        end as start_step
    from paced
),

-- An attempt that never began a step, nor tells what it loaded, says nothing of where the run went on.
followed as (
    select
        begun.*,
        next_one.record_id is not null as is_followed,
        coalesce(next_one.is_measured, false) as is_following_measured,
        next_one.start_step as following_step,
        next_one.loaded_step as following_loaded_step
    from (
        select
            *,
            lead(record_id) over (partition by run_id order by run_attempt) as following_record_id
        from begun
        where not (is_measured and start_step is null)
    ) as begun
    left join begun as next_one
        on begun.following_record_id = next_one.record_id
),

-- Steps that the next attempt loads were done, even if the log ends before them.
reached as (
    select
        * exclude (following_record_id),
        if(
            following_loaded_step > last_step
            and (following_loaded_step - last_step) * median_step_seconds <= epoch(observed_until - last_step_at),
            following_loaded_step,
            last_step
        ) as reached_step
    from followed
)

select
    * exclude (is_following_measured, following_step, following_loaded_step),
    case
        when is_following_measured then following_step
        when state in ('COMPLETED', 'RESIZING') then null
        when has_checkpoints then greatest(if(durable_step <= reached_step, durable_step, null), start_step)
    end as next_start_step,
    has_steps
    and not is_following_measured
    and state not in ('COMPLETED', 'RESIZING')
    and not has_checkpoints as is_loss_unknown
from reached
union all by name
select
    *,
    null::bigint as reached_step,
    null::bigint as next_start_step,
    false as is_followed,
    false as is_loss_unknown
from begun
where is_measured and start_step is null
