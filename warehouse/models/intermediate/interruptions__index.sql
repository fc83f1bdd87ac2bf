-- One row per interruption: an attempt of a tracked run that ended before the run was finished.
-- COMPLETED, or cancelled, is one only if the run was resumed; otherwise it is the run's end. A restart inside an
-- attempt, which its training log shows, is one too.
with ended as (
    select
        attempts.*,
        coalesce(
            attempts.state in (
                'FAILED',
                'NODE_FAIL',
                'OUT_OF_MEMORY',
                'BOOT_FAIL',
                'DEADLINE',
                'TIMEOUT',
                'PREEMPTED',
                'REQUEUED',
                'RESTARTED'
            ),
            false
        ) as is_failed,
        coalesce(attempts.state, '') <> 'COMPLETED'
        and if(
            training.record_id is null or training.is_loss_unknown,
            epoch(attempts.ended_at)::bigint - epoch(attempts.started_at)::bigint
            < attempts.restart_overhead_seconds + attempts.checkpoint_interval_seconds,
            training.is_without_progress
        ) as is_without_checkpoint
    from intermediate.runs__attempts as attempts
    left join intermediate.training__attempts as training
        on attempts.record_id = training.record_id
    where attempts.ended_at is not null
),

stops as (
    select
        *,
        left(
            sha256(
                concat_ws(
                    chr(31),
                    cluster,
                    job_id_raw,
                    coalesce(epoch_us(submitted_at)::varchar, ''),
                    epoch_us(allocated_at),
                    restart_number
                )
            ),
            16
        ) as interruption_id
    from ended
    where
        is_failed
        or (
            next_started_at is not null
            -- a resized job lives on; a revoked one runs on a sibling cluster
            and state not in ('RESIZING', 'REVOKED', 'RUNNING', 'SUSPENDED', 'COMPLETING')
        )
),

-- A stop whose attempt left nothing to build on, or was too short to save a checkpoint, belongs to the incident of the
-- stop before it.
incidents as (
    select
        *,
        sum((not is_without_checkpoint or run_attempt = 1)::int) over (
            partition by run_id
            order by run_attempt
        ) as incident
    from stops
)

select
    *,
    first_value(interruption_id) over (
        partition by run_id, incident
        order by run_attempt
    ) as incident_id,
    date_diff('second', ended_at, next_started_at) as down_seconds,
    coalesce(
        next_started_at is not null and next_started_at <= ended_at + to_seconds(resume_window_seconds),
        false
    ) as is_resumed_in_window
from incidents
