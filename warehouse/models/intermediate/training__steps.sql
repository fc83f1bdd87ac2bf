-- One row per attempt, or piece of it, and step whose end its log shows, with the one before it.
-- Beside the printed steps those at which a save began, for the state is whole then; after the last printed one also
-- those of which only the end of the save is told. Clocks may step back: no step ends before the one it follows.
-- Slice: split_part(record_id, '/', 1)
with whole as (
    select
        lines.record_id,
        lines.step,
        lines.first_at as occurred_at,
        lines.step_seconds,
        lines.samples
    from intermediate.training__step_lines as lines
    anti join intermediate.training__pieces as pieces
        on lines.record_id = pieces.attempt_record_id
),

parted as (
    select
        pieces.record_id,
        matches.step,
        matches.occurred_at,
        matches.step_seconds,
        matches.samples
    from intermediate.training__matches as matches
    asof inner join intermediate.training__pieces as pieces
        on matches.record_id = pieces.attempt_record_id and matches.occurred_at >= pieces.first_line_at
    semi join intermediate.training__pieces as parted
        on matches.record_id = parted.attempt_record_id
    anti join intermediate.training__strays as strays
        on matches.log_record_id = strays.log_record_id
    where matches.event = 'step' and matches.step is not null
),

printed as (
    select
        *,
        true as is_printed
    from whole
    union all
    select
        record_id,
        step,
        min(occurred_at) as occurred_at,
        arg_min(step_seconds, (occurred_at, step_seconds)) as step_seconds,
        max(samples) as samples,
        true as is_printed
    from parted
    group by record_id, step
),

printed_ranges as (
    select
        record_id,
        min(step) as first_step,
        max(step) as last_step
    from printed
    group by record_id
),

saves as (
    select
        events.record_id,
        events.step,
        min(events.occurred_at) as occurred_at,
        null::double as step_seconds,
        null::bigint as samples,
        false as is_printed
    from intermediate.training__events as events
    inner join printed_ranges
        on events.record_id = printed_ranges.record_id and events.step > printed_ranges.first_step
    anti join printed
        on events.record_id = printed.record_id and events.step = printed.step
    where
        events.event = 'checkpoint_begun'
        or (events.event = 'checkpoint_durable' and events.step > printed_ranges.last_step)
    group by events.record_id, events.step
),

shown as (
    select * from printed
    union all
    select * from saves
),

followed as materialized (
    select
        *,
        lag(step) over in_order as previous_step,
        lag(samples) over in_order as previous_samples,
        lag(occurred_at) over in_order as previous_at
    from shown
    window in_order as (partition by record_id order by step)
),

disordered as (
    select distinct record_id
    from followed
    where occurred_at < previous_at
),

-- A running maximum costs more than all else here, and few logs need it.
ordered as (
    select
        followed.* exclude (occurred_at, previous_at),
        followed.occurred_at as ended_at,
        followed.previous_at as previous_ended_at
    from followed
    anti join disordered
        on followed.record_id = disordered.record_id
    union all by name
    select
        followed.* exclude (occurred_at, previous_at),
        max(followed.occurred_at) over (
            partition by followed.record_id
            order by followed.step
            rows unbounded preceding
        ) as ended_at,
        max(followed.occurred_at) over (
            partition by followed.record_id
            order by followed.step
            rows between unbounded preceding and 1 preceding
        ) as previous_ended_at
    from followed
    semi join disordered
        on followed.record_id = disordered.record_id
)

select
    *,
    epoch(ended_at - previous_ended_at) / (step - previous_step) as seconds_each,
    date_trunc('hour', ended_at) as hour_at
from ordered
