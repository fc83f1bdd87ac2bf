-- One row per attempt of a tracked run, or per piece of one that restarted training inside its allocation, in the run's
-- order, with what came before and after it.
-- A piece that is followed by another one of the same attempt has the state RESTARTED and a record_id of its own;
-- `attempt_record_id` and `allocated_at` are those of the whole attempt. `run_attempt` counts pieces.
with placed as (
    select
        attempts.*,
        chains.run_attempt as run_allocation,
        chains.joined_by,
        left(
            sha256(
                concat_ws(
                    chr(31),
                    firsts.cluster,
                    firsts.run_key,
                    firsts.job_id_raw,
                    coalesce(epoch_us(firsts.submitted_at)::varchar, ''),
                    epoch_us(firsts.started_at)
                )
            ),
            16
        ) as run_id
    from intermediate.runs__tracked as attempts
    inner join intermediate.runs__chains as chains
        on attempts.record_id = chains.record_id
    inner join intermediate.runs__tracked as firsts
        on chains.first_record_id = firsts.record_id
),

whole as (
    select
        placed.*,
        placed.record_id as attempt_record_id,
        placed.started_at as allocated_at,
        0 as restart_number
    from placed
    anti join intermediate.training__pieces as pieces
        on placed.record_id = pieces.attempt_record_id
),

bounded as (
    select
        placed.*,
        pieces.record_id as piece_record_id,
        pieces.restart_number,
        placed.started_at as allocated_at,
        -- a log may go on after the end that the scheduler noted
        least(coalesce(pieces.started_at, placed.started_at), placed.observed_until) as piece_started_at,
        least(if(pieces.restart_number = 0, null, pieces.ended_at), placed.observed_until) as piece_ended_at
    from placed
    inner join intermediate.training__pieces as pieces
        on placed.record_id = pieces.attempt_record_id
),

-- How the scheduler says that the attempt ended holds for its last piece alone.
parted as (
    select
        * exclude (piece_record_id, piece_started_at, piece_ended_at)
        replace (
            piece_record_id as record_id,
            piece_started_at as started_at,
            piece_ended_at as observed_until,
            if(restart_number = 0, ended_at, piece_ended_at) as ended_at,
            if(restart_number = 0, state, 'RESTARTED') as state,
            if(restart_number = 0, state_raw, null) as state_raw,
            if(restart_number = 0, exit_code, null) as exit_code,
            if(restart_number = 0, signal, null) as signal,
            if(restart_number = 0, reason, null) as reason,
            if(restart_number = 0, failed_node, null) as failed_node,
            if(restart_number = 0, suspended_seconds, 0) as suspended_seconds,
            if(piece_started_at = allocated_at, joined_by, 'restart inside the attempt') as joined_by
        ),
        record_id as attempt_record_id
    from bounded
),

pieces as (
    select * from whole
    union all by name
    select * from parted
),

numbered as (
    select
        * exclude (run_allocation),
        row_number() over (
            partition by run_id
            order by run_allocation, started_at, restart_number = 0, restart_number
        ) as run_attempt
    from pieces
)

select
    *,
    lead(started_at) over run_order as next_started_at,
    lead(coalesce(eligible_at, submitted_at)) over run_order as next_eligible_at,
    lead(gpus) over run_order as next_gpus,
    lead(job_id_raw) over run_order as next_job_id_raw
from numbered
window run_order as (partition by run_id order by run_attempt)
