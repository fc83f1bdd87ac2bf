-- One row per attempt, or piece of it, and step whose end its log shows, with the one before it.
-- Beside the printed steps those at which a save began: the state is whole then. Clocks may step back by a second: no
-- step ends before the one before it.
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
        arg_min(step_seconds, occurred_at) as step_seconds,
        max(samples) as samples,
        true as is_printed
    from parted
    group by record_id, step
),

first_steps as (
    select
        record_id,
        min(step) as first_step
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
    inner join first_steps
        on events.record_id = first_steps.record_id and events.step > first_steps.first_step
    anti join printed
        on events.record_id = printed.record_id and events.step = printed.step
    where events.event = 'checkpoint_begun'
    group by events.record_id, events.step
),

shown as (
    select * from printed
    union all
    select * from saves
),

ordered as (
    select
        * exclude (occurred_at),
        max(occurred_at) over so_far as ended_at,
        lag(step) over so_far as previous_step,
        lag(samples) over so_far as previous_samples
    from shown
    window so_far as (partition by record_id order by step rows unbounded preceding)
),

timed as (
    select
        *,
        lag(ended_at) over (partition by record_id order by step) as previous_ended_at
    from ordered
)

select
    *,
    epoch(ended_at - previous_ended_at) / (step - previous_step) as seconds_each
from timed
