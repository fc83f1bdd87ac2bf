-- One row per tracked run: how long it took, how often it stopped, what it lost, and how much of it was productive.
-- Elapsed time runs from the first start to the last end, or to the last instant a running attempt was seen. The bounds
-- of effective training time assume that nothing, or a whole checkpoint interval, was lost at each stop whose loss is
-- not measured, and that the work since the last durable checkpoint of a running attempt will be kept, or lost.
with attempts as (
    select
        cluster,
        run_id,
        any_value(run) as run,
        min(started_at) as started_at,
        max(observed_until) as observed_until,
        if(bool_or(ended_at is null), null, max(ended_at)) as ended_at,
        max(gpus) as gpus,
        count(*) filter (where restart_number = 0) as attempts,
        list_sort(list_distinct(list(joined_by) filter (where joined_by is not null))) as joined_by,
        sum(greatest(epoch(allocated_at)::bigint - epoch(eligible_at)::bigint, 0) * gpus) filter (
            where restart_number = 0
        ) as queued_gpu_seconds,
        sum((epoch(observed_until)::bigint - epoch(allocated_at)::bigint) * gpus) filter (
            where restart_number = 0
        ) as allocated_gpu_seconds
    from intermediate.runs__attempts
    group by cluster, run_id
),

stops as (
    select
        index.run_id,
        count(*) as interruptions,
        count(*) filter (where verdicts.is_planned) as planned,
        count(*) filter (where verdicts.class = 'unexpected') as unexpected,
        count(distinct index.incident_id) as incidents
    from intermediate.interruptions__index as index
    inner join intermediate.interruptions__verdicts as verdicts
        on index.interruption_id = verdicts.interruption_id
    group by index.run_id
),

states as (
    select
        run_id,
        sum(gpu_seconds) as elapsed_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'productive'), 0) as productive_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'starting'), 0) as starting_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'checkpointing'), 0) as checkpointing_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'lost_work'), 0) as lost_work_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'stalled'), 0) as stalled_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'stopping'), 0) as stopping_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'down_unexpected'), 0) as down_unexpected_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'down_planned'), 0) as down_planned_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state in ('suspended', 'pending', 'unobserved')), 0)
            as other_gpu_seconds,
        coalesce(sum(measured_gpu_seconds) filter (where state = 'pending'), 0) as pending_measured_gpu_seconds,
        coalesce(sum(assumed_gpu_seconds), 0) as assumed_gpu_seconds
    from marts.ledger
    group by run_id
),

bounds as (
    select
        run_id,
        sum(tail * gpus) as tail_gpu_seconds,
        sum(longest_tail * gpus) as longest_tail_gpu_seconds
    from intermediate.ledger__phases
    group by run_id
),

joined as (
    select
        attempts.*,
        bounds.* exclude (run_id),
        coalesce(stops.interruptions, 0) as interruptions,
        coalesce(stops.planned, 0) as planned,
        coalesce(stops.unexpected, 0) as unexpected,
        coalesce(stops.incidents, 0) as incidents,
        states.* exclude (run_id),
        (epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint) / 3600 as elapsed_hours
    from attempts
    left join stops
        on attempts.run_id = stops.run_id
    left join states
        on attempts.run_id = states.run_id
    left join bounds
        on attempts.run_id = bounds.run_id
),

counts as (
    select interruptions as events from joined
    union
    select unexpected as events from joined
),

limits as (
    select
        events,
        poisson_lower(events) as lower,
        poisson_upper(events) as upper
    from counts
)

select
    cluster,
    run_id,
    run,
    started_at,
    ended_at,
    observed_until,
    gpus,
    attempts,
    joined_by,
    interruptions,
    planned,
    unexpected,
    incidents,
    round(elapsed_hours, 6) as elapsed_hours,
    round(elapsed_hours / nullif(interruptions, 0), 6) as mtti_hours,
    round(elapsed_hours / nullif(stops_limits.upper, 0), 6) as mtti_hours_lower,
    round(elapsed_hours / nullif(stops_limits.lower, 0), 6) as mtti_hours_upper,
    round(elapsed_hours / nullif(unexpected, 0), 6) as mtti_unexpected_hours,
    round(elapsed_hours / nullif(unexpected_limits.upper, 0), 6) as mtti_unexpected_hours_lower,
    round(elapsed_hours / nullif(unexpected_limits.lower, 0), 6) as mtti_unexpected_hours_upper,
    round(productive_gpu_seconds / nullif(elapsed_gpu_seconds, 0), 6) as effective_training_time,
    round(
        (productive_gpu_seconds + tail_gpu_seconds - longest_tail_gpu_seconds) / nullif(elapsed_gpu_seconds, 0), 6
    ) as effective_training_time_lower,
    round(
        -- a tail is assumed; what a running attempt is seen to have done since its last checkpoint comes on top
        (productive_gpu_seconds + tail_gpu_seconds + pending_measured_gpu_seconds) / nullif(elapsed_gpu_seconds, 0), 6
    ) as effective_training_time_upper,
    round(
        productive_gpu_seconds / nullif(coalesce(queued_gpu_seconds, 0) + allocated_gpu_seconds, 0), 6
    ) as ettr,
    elapsed_gpu_seconds::bigint as elapsed_gpu_seconds,
    productive_gpu_seconds::bigint as productive_gpu_seconds,
    starting_gpu_seconds::bigint as starting_gpu_seconds,
    checkpointing_gpu_seconds::bigint as checkpointing_gpu_seconds,
    lost_work_gpu_seconds::bigint as lost_work_gpu_seconds,
    stalled_gpu_seconds::bigint as stalled_gpu_seconds,
    stopping_gpu_seconds::bigint as stopping_gpu_seconds,
    down_unexpected_gpu_seconds::bigint as down_unexpected_gpu_seconds,
    down_planned_gpu_seconds::bigint as down_planned_gpu_seconds,
    other_gpu_seconds::bigint as other_gpu_seconds,
    queued_gpu_seconds::bigint as queued_gpu_seconds,
    assumed_gpu_seconds::bigint as assumed_gpu_seconds
from joined
inner join limits as stops_limits
    on joined.interruptions = stops_limits.events
inner join limits as unexpected_limits
    on joined.unexpected = unexpected_limits.events
