-- One row per line of a tracked attempt that tells of a step out of order: alone among lines of far other steps.
-- Steps from it to the next line's (or, where it is ahead, from the line before to it) cannot have been done in the
-- time between: neither a restart, which goes on from the lower step, nor a clock that errs by a few seconds.
-- Slice: record_id
with in_time as (
    select
        record_id,
        step,
        lag(step) over (partition by record_id order by occurred_at, step) as previous_step
    from intermediate.training__matches
    where event = 'step' and record_id is not null and step is not null
),

-- Few logs need more than that look.
suspects as (
    select distinct record_id
    from in_time
    where step < previous_step
),

lines as (
    select
        matches.record_id,
        matches.log_record_id,
        matches.event,
        matches.step,
        matches.occurred_at,
        sum((matches.event <> 'step')::int) over (
            partition by matches.record_id
            order by matches.occurred_at, matches.event = 'step'
        ) as markers
    from intermediate.training__matches as matches
    semi join suspects
        on matches.record_id = suspects.record_id
    where matches.event in ('start', 'checkpoint_loaded') or (matches.event = 'step' and matches.step is not null)
),

compared as (
    select
        *,
        coalesce(step <> lag(step) over in_order, true)::int as is_new
    from lines
    where event = 'step'
    window in_order as (partition by record_id, markers order by occurred_at, step)
),

numbered as (
    select
        *,
        sum(is_new) over (
            partition by record_id, markers
            order by occurred_at, step
        ) as turn
    from compared
),

-- Several ranks may print one step, one after the other.
turns as (
    select
        record_id,
        markers,
        turn,
        step,
        min(occurred_at) as first_at,
        max(occurred_at) as last_at
    from numbered
    group by record_id, markers, turn, step
),

firsts as (
    select
        record_id,
        step,
        min(first_at) as first_at
    from turns
    group by record_id, step
),

gaps as (
    select
        record_id,
        epoch(first_at - lag(first_at) over in_order) / (step - lag(step) over in_order) as step_seconds
    from firsts
    window in_order as (partition by record_id order by step)
),

-- Where steps were done again, the gap to the next new one is long: a short one tells the pace.
paces as (
    select
        record_id,
        quantile_disc(step_seconds, 0.25) as step_seconds
    from gaps
    where step_seconds > 0
    group by record_id
),

paced as (
    select
        turns.*,
        paces.step_seconds
    from turns
    inner join paces
        on turns.record_id = paces.record_id
),

between_others as (
    select
        *,
        lag(step) over in_order as previous_step,
        lag(last_at) over in_order as previous_at,
        lead(step) over in_order as next_step,
        max(step) over (in_order rows between unbounded preceding and 1 preceding) as highest_before,
        count(*) over (partition by record_id, step) as tellings
    from paced
    window in_order as (partition by record_id, markers order by turn)
),

ahead as (
    select
        record_id,
        markers,
        turn
    from between_others
    where
        previous_step = highest_before
        and next_step > previous_step
        and next_step < step
        and tellings = 1
        and (step - next_step) * step_seconds >= 5
        and (step - previous_step) * step_seconds > 2 * epoch(first_at - previous_at) + 5
),

others as (
    select
        paced.*,
        lag(paced.step) over in_order as previous_step,
        lead(paced.step) over in_order as next_step,
        lead(paced.first_at) over in_order as next_at,
        paced.first_at > min(paced.first_at) over (
            partition by paced.record_id, paced.markers, paced.step
        ) as is_told_before
    from paced
    anti join ahead
        on paced.record_id = ahead.record_id and paced.markers = ahead.markers and paced.turn = ahead.turn
    window in_order as (partition by paced.record_id, paced.markers order by paced.turn)
),

alone as (
    select
        *,
        coalesce(
            step < previous_step
            and (previous_step - step) * step_seconds >= 5
            and if(
                next_step is null,
                not is_told_before,
                next_step >= previous_step and (next_step - step) * step_seconds > 2 * epoch(next_at - last_at) + 5
            ),
            false
        ) as is_alone
    from others
),

-- Ranks whose clocks differ tell the same steps in turn: then the later telling says nothing, not even where it is not
-- between two of the others any more.
doubled as (
    select
        record_id,
        markers
    from alone
    where is_alone and is_told_before
    group by record_id, markers
    having count(*) >= 3
),

behind as (
    select
        alone.record_id,
        alone.markers,
        alone.turn
    from alone
    left join doubled
        on alone.record_id = doubled.record_id and alone.markers = doubled.markers
    where alone.is_alone or (alone.is_told_before and doubled.record_id is not null)
),

strays as (
    select * from ahead
    union all
    select * from behind
)

select
    numbered.log_record_id,
    numbered.record_id
from numbered
semi join strays
    on numbered.record_id = strays.record_id and numbered.markers = strays.markers and numbered.turn = strays.turn
