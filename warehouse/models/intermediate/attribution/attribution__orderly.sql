-- One row per interruption: whether it may pass for an orderly stop.
-- It may not if a fatal fault stands uncleared on its nodes at its end, or if steps had stopped before it; where
-- nothing is known of steps, if a node was taken out around the end for a reason that names a part or a repair; nor if
-- its log or its exit code tell of an error.
with faulted as (
    select distinct stops.interruption_id
    from intermediate.attribution__stops as stops
    inner join intermediate.attribution__event_windows as windows
        on stops.interruption_id = windows.interruption_id
    inner join intermediate.hardware__faults as faults
        on windows.cluster = faults.cluster and windows.node = faults.node
    where
        faults.is_fatal
        and date_trunc('second', faults.first_at) <= stops.ended_at
        and (faults.cleared_at is null or faults.cleared_at > stops.ended_at)
),

taken_out as (
    select distinct interruption_id
    from intermediate.attribution__candidates
    where
        kind = 'node state'
        and not is_planned_rollout
        and evidence_class not in ('reason_other', 'reason_none', 'reason_planned')
),

-- What was asked to stop does not say that it failed: 130 and 143 are the signals of a request.
failed as (
    select distinct candidates.interruption_id
    from intermediate.attribution__candidates as candidates
    inner join intermediate.attribution__stops as stops
        on
            candidates.interruption_id = stops.interruption_id
            and candidates.last_at >= stops.stopped_at - interval 1 minute
    where
        candidates.evidence_class in (
            'log_program_error', 'log_cuda_program_error', 'log_cuda_device_error', 'log_gpu_memory_error',
            'log_gpu_out_of_memory', 'log_storage_error', 'log_name_service_error', 'log_loss_not_finite',
            'log_loss_spike', 'log_nccl_timeout'
        )
        or (
            candidates.evidence_class = 'log_process_end'
            and try_cast(regexp_extract(candidates.text, '(?i)exit code:? ([0-9]+)', 1) as bigint) not in (0, 130, 143)
        )
        or (
            candidates.evidence_class in ('state_requeued', 'state_cancelled')
            and candidates.code not in (0, 130, 143)
        )
)

select
    stops.interruption_id,
    stops.is_resumed_in_window,
    faulted.interruption_id is null
    and failed.interruption_id is null
    and if(stops.is_progress_observed, stops.is_advancing, taken_out.interruption_id is null) as is_orderly,
    stops.state in ('TIMEOUT', 'DEADLINE')
    or coalesce(
        stops.state = 'COMPLETED'
        and stops.time_limit_seconds - stops.elapsed_seconds <= 300,
        false
    ) as is_time_limit
from intermediate.attribution__stops as stops
left join faulted
    on stops.interruption_id = faulted.interruption_id
left join failed
    on stops.interruption_id = failed.interruption_id
left join taken_out
    on stops.interruption_id = taken_out.interruption_id
