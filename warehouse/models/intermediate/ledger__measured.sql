-- One row per measured attempt and interval of one state, in seconds from its start.
-- A state holds until the next one begins; suspension and, while steps run, the blocking part of a save come before it.
with attempts as (
    select
        attempts.record_id,
        attempts.state,
        attempts.ended_at,
        epoch(attempts.started_at)::bigint as from_second,
        epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint as held_seconds,
        coalesce(attempts.suspended_seconds, 0) as suspended_seconds,
        attempts.checkpoint_interval_seconds,
        training.* exclude (record_id, cluster, run_id, run_attempt)
    from intermediate.runs__attempts as attempts
    inner join intermediate.training__attempts as training
        on attempts.record_id = training.record_id
),

-- Where it was suspended the log only shows as its longest silence.
silences as (
    select
        attempts.record_id,
        arg_max(
            steps.ended_at, (epoch_us(steps.ended_at) - epoch_us(steps.previous_ended_at), steps.ended_at)
        ) filter (where steps.previous_ended_at is not null) as over_at
    from attempts
    left join intermediate.training__steps as steps
        on attempts.record_id = steps.record_id
    where attempts.suspended_seconds > 0
    group by attempts.record_id
),

suspensions as (
    select
        attempts.record_id,
        greatest(
            coalesce(epoch_us(silences.over_at) // 1000000 - attempts.from_second, attempts.held_seconds)
            - attempts.suspended_seconds,
            0
        ) as at_second,
        attempts.suspended_seconds
    from attempts
    inner join silences
        on attempts.record_id = silences.record_id
),

instants as (
    select
        record_id,
        null::timestamptz as moment,
        0 as place,
        0 as step,
        struct_pack(state := 'starting', charged := null::varchar, is_assumed := is_start_assumed) as phase,
        0 as saving
    from attempts
    union all
    select
        record_id,
        first_step_started_at,
        1,
        0,
        struct_pack(state := 'productive', charged := null, is_assumed := is_begun_late),
        0
    from attempts
    where has_steps
    union all
    select
        record_id,
        first_line_at,
        2,
        0,
        struct_pack(state := 'productive', charged := null, is_assumed := false),
        0
    from attempts
    where is_begun_late and coalesce(next_start_step >= first_step, true)
    union all
    select
        losses.record_id,
        marks.ended_at,
        3,
        losses.from_step,
        struct_pack(
            state := if(losses.is_pending, 'pending', 'lost_work'),
            charged := if(losses.is_pending, null, losses.charged_record_id),
            is_assumed := false
        ),
        0
    from intermediate.ledger__losses as losses
    inner join intermediate.ledger__marks as marks
        on losses.record_id = marks.record_id and losses.from_step = marks.step
    union all
    select
        record_id,
        greatest(first_step_started_at, last_progress_at - to_seconds(checkpoint_interval_seconds // 2)),
        3,
        0,
        struct_pack(
            state := if(ended_at is null, 'pending', 'lost_work'),
            charged := if(ended_at is null, null, record_id),
            is_assumed := true
        ),
        0
    from attempts
    where is_loss_unknown
    union all
    select
        record_id,
        last_progress_at,
        4,
        0,
        struct_pack(
            state := case
                when ended_at is null then 'pending'
                when state in ('COMPLETED', 'RESIZING') then 'stopping'
                else 'stalled'
            end,
            charged := if(state in ('COMPLETED', 'RESIZING'), null, record_id),
            is_assumed := false
        ),
        0
    from attempts
    where has_steps
    union all
    select
        record_id,
        ended_at,
        5,
        0,
        null,
        1
    from intermediate.ledger__marks
    where blocking_microseconds > 0
    union all
    select
        record_id,
        ended_at + to_microseconds(blocking_microseconds),
        5,
        0,
        null,
        -1
    from intermediate.ledger__marks
    where blocking_microseconds > 0
),

turns as (
    select
        instants.record_id,
        attempts.held_seconds,
        instants.place,
        instants.step,
        instants.phase,
        instants.saving,
        0 as suspending,
        least(
            greatest(coalesce(epoch_us(instants.moment) // 1000000 - attempts.from_second, 0), 0),
            attempts.held_seconds
        ) as at_second
    from instants
    inner join attempts
        on instants.record_id = attempts.record_id
    union all
    select
        attempts.record_id,
        attempts.held_seconds,
        6 as place,
        0 as step,
        null as phase,
        0 as saving,
        unnest([1, -1]) as suspending,
        least(
            suspensions.at_second + unnest([0, suspensions.suspended_seconds]),
            attempts.held_seconds
        ) as at_second
    from suspensions
    inner join attempts
        on suspensions.record_id = attempts.record_id
),

running as (
    select
        record_id,
        at_second,
        coalesce(lead(at_second) over in_order, held_seconds) - at_second as seconds,
        last_value(phase ignore nulls) over so_far as phase,
        sum(saving) over so_far as saving,
        sum(suspending) over so_far as suspending
    from turns
    window
        in_order as (partition by record_id order by at_second, place, step),
        so_far as (partition by record_id order by at_second, place, step rows unbounded preceding)
)

select
    record_id,
    at_second as from_second,
    seconds,
    case
        when suspending > 0 then 'suspended'
        when saving > 0 and phase.state in ('productive', 'lost_work', 'pending') then 'checkpointing'
        else phase.state
    end as state,
    if(suspending > 0 or saving > 0, null, phase.charged) as charged_record_id,
    suspending = 0 and phase.is_assumed as is_assumed
from running
where seconds > 0
