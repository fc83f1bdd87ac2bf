-- One row per attempt of a tracked run: how many seconds it spent in each state, assumed where no log measures them.
-- They are laid out in this order: starting, productive, suspended, then lost work or pending work at the end.
with lengths as (
    select
        attempts.*,
        interruptions.interruption_id,
        epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint as held_seconds,
        least(
            coalesce(attempts.suspended_seconds, 0),
            epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint
        ) as suspended
    from intermediate.runs__attempts as attempts
    left join intermediate.interruptions__index as interruptions
        on attempts.record_id = interruptions.record_id
),

begun as (
    select
        *,
        least(held_seconds - suspended, restart_overhead_seconds) as starting
    from lengths
),

tailed as (
    select
        *,
        if(
            state in ('COMPLETED', 'RESIZING'),
            0,
            least(held_seconds - suspended - starting, checkpoint_interval_seconds // 2)
        ) as tail,
        if(
            state in ('COMPLETED', 'RESIZING'),
            0,
            least(held_seconds - suspended - starting, checkpoint_interval_seconds)
        ) as longest_tail
    from begun
)

select
    *,
    held_seconds - suspended - starting - tail as productive,
    if(ended_at is null, 'pending', 'lost_work') as tail_state
from tailed
