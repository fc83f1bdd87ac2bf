-- One row per piece of a tracked attempt that restarted training inside its allocation, by its log.
-- A restart shows as a start or a load of a checkpoint after steps, followed by a step that was done before, or by the
-- load of a checkpoint of the last step; or as steps that are done again without such a line. Piece 0 is the last one,
-- which ends with the attempt; those before it are counted from 1.
-- Slice: split_part(record_id, '/', 1)
with begun as (
    select
        record_id,
        min(first_at) as first_at
    from intermediate.training__step_lines
    group by record_id
),

-- Only these attempts are looked at line by line.
suspects as (
    select record_id
    from intermediate.training__step_lines
    where last_at > first_at + interval 5 second
    union
    select matches.record_id
    from intermediate.training__matches as matches
    inner join begun
        on matches.record_id = begun.record_id
    where matches.event in ('start', 'checkpoint_loaded') and matches.occurred_at > begun.first_at
),

lines as (
    select
        matches.record_id,
        matches.event,
        matches.step,
        matches.occurred_at,
        sum((matches.event <> 'step')::int) over so_far as markers,
        last_value(if(matches.event = 'checkpoint_loaded', matches.step, null) ignore nulls) over so_far as loaded_step
    from intermediate.training__matches as matches
    semi join suspects
        on matches.record_id = suspects.record_id
    anti join intermediate.training__strays as strays
        on matches.log_record_id = strays.log_record_id
    where matches.event in ('step', 'start', 'checkpoint_loaded')
    window so_far as (
        partition by matches.record_id
        order by matches.occurred_at, matches.event = 'step', matches.step
        rows unbounded preceding
    )
),

steps as (
    select
        record_id,
        step,
        occurred_at,
        markers,
        loaded_step,
        lag(step) over lines_before as previous_step,
        lag(occurred_at) over lines_before as previous_at,
        lag(markers) over lines_before as previous_markers,
        lag(occurred_at) over (partition by record_id, step order by occurred_at) as done_before_at
    from lines
    where event = 'step'
    window lines_before as (partition by record_id order by occurred_at, step)
),

paces as (
    select
        record_id,
        median(epoch(occurred_at - previous_at) / (step - previous_step)) as step_seconds
    from steps
    where step > previous_step
    group by record_id
),

returns as (
    select
        steps.record_id,
        steps.occurred_at as first_line_at,
        steps.previous_at,
        steps.markers > steps.previous_markers as is_marked,
        to_milliseconds(1000 * coalesce(paces.step_seconds, 0)) as step_length
    from steps
    left join paces
        on steps.record_id = paces.record_id
    where
        (
            steps.markers > steps.previous_markers
            and (steps.step <= steps.previous_step or steps.loaded_step >= steps.previous_step)
        )
        or (
            -- further back than clocks err
            (steps.previous_step - steps.step) * paces.step_seconds + paces.step_seconds >= 5
            and steps.step < steps.previous_step
            and steps.done_before_at < steps.occurred_at - interval 5 second
        )
),

markers as (
    select
        record_id,
        occurred_at
    from lines
    where event <> 'step'
),

-- What is logged in the second of the step before still belongs to it: no two pieces begin at one instant.
marked as (
    select
        returns.*,
        if(
            returns.is_marked,
            markers.occurred_at,
            greatest(returns.previous_at + interval 1 microsecond, returns.first_line_at - returns.step_length)
        ) as resumed_at
    from returns
    asof left join markers
        on returns.record_id = markers.record_id and returns.previous_at < markers.occurred_at
),

errors as (
    select
        record_id,
        occurred_at
    from intermediate.training__matches
    where event in ('nccl_timeout', 'nccl_error', 'error', 'loss_not_finite', 'exit')
),

restarts as (
    select
        marked.record_id,
        marked.first_line_at,
        date_trunc('second', greatest(marked.previous_at, errors.occurred_at)) as interrupted_at,
        date_trunc('second', marked.resumed_at) as resumed_at,
        marked.resumed_at as from_at,
        row_number() over (partition by marked.record_id order by marked.first_line_at) as restart_number
    from marked
    asof left join errors
        on marked.record_id = errors.record_id and marked.resumed_at >= errors.occurred_at
),

pieces as (
    select
        record_id as attempt_record_id,
        restart_number,
        lag(resumed_at) over in_order as started_at,
        lag(from_at) over in_order as from_at,
        interrupted_at as ended_at,
        lag(first_line_at) over in_order as first_line_at
    from restarts
    window in_order as (partition by record_id order by restart_number)
    union all
    select
        record_id as attempt_record_id,
        0 as restart_number,
        max(resumed_at) as started_at,
        max(from_at) as from_at,
        null as ended_at,
        max(first_line_at) as first_line_at
    from restarts
    group by record_id
)

select
    attempt_record_id,
    if(restart_number = 0, attempt_record_id, concat(attempt_record_id, '/', restart_number)) as record_id,
    restart_number,
    started_at,
    ended_at,
    coalesce(first_line_at, '-infinity'::timestamptz) as first_line_at,
    coalesce(from_at, '-infinity'::timestamptz) as from_at
from pieces
