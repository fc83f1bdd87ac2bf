-- One row per attempt of a tracked run: how many seconds it spent in which state.
-- Where no training log measures it, the states are assumed, and laid out in this order: starting, productive,
-- suspended, then lost or pending work at the end. Where one does, `tail` is the lost work that still was assumed.
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
),

measured as (
    select
        record_id,
        coalesce(sum(seconds) filter (where state = 'starting'), 0)::bigint as starting,
        bool_or(state = 'starting' and is_assumed) as is_start_assumed,
        coalesce(sum(seconds) filter (where state = 'stalled'), 0)::bigint as stalled,
        coalesce(sum(seconds) filter (where state = 'productive'), 0)::bigint as productive,
        coalesce(sum(seconds) filter (where is_assumed and state in ('lost_work', 'pending')), 0)::bigint as tail
    from intermediate.ledger__measured
    group by record_id
)

select
    tailed.* exclude (starting, tail, longest_tail),
    training.record_id is not null as is_measured,
    coalesce(training.is_loss_unknown, true) as is_loss_assumed,
    if(training.record_id is null, true, coalesce(measured.is_start_assumed, false)) as is_start_assumed,
    if(training.record_id is null, tailed.starting, coalesce(measured.starting, 0)) as starting,
    if(training.record_id is null, null, coalesce(measured.stalled, 0)) as stalled,
    training.last_progress_at,
    if(training.record_id is null, tailed.tail, coalesce(measured.tail, 0)) as tail,
    case
        when training.record_id is null then tailed.longest_tail
        when measured.tail > 0 then measured.tail + least(measured.tail, measured.productive)
        else 0
    end as longest_tail,
    if(
        training.record_id is null,
        tailed.held_seconds - tailed.suspended - tailed.starting - tailed.tail,
        coalesce(measured.productive, 0)
    ) as productive,
    if(tailed.ended_at is null, 'pending', 'lost_work') as tail_state
from tailed
left join intermediate.training__attempts as training
    on tailed.record_id = training.record_id
left join measured
    on tailed.record_id = measured.record_id
