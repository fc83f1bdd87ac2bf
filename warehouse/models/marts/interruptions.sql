-- One row per interruption of a tracked run: when it stopped, why, how sure that is, and what it cost.
with phases as (
    select
        interruption_id,
        is_measured,
        is_loss_assumed,
        stalled,
        last_progress_at,
        lead(starting) over in_order as restart_seconds,
        lead(is_start_assumed) over in_order as is_restart_assumed
    from intermediate.ledger__phases
    window in_order as (partition by run_id order by run_attempt)
),

-- A stop may also cost work of attempts before the one that it ended.
lost_work as (
    select
        interruption_id,
        sum(seconds)::bigint as seconds,
        sum(seconds * gpus)::bigint as gpu_seconds
    from intermediate.ledger__intervals
    where state = 'lost_work' and interruption_id is not null
    group by interruption_id
),

costed as (
    select
        index.*,
        verdicts.* exclude (interruption_id, record_id, cluster),
        phases.restart_seconds,
        phases.is_loss_assumed or coalesce(phases.is_restart_assumed, false) as is_cost_assumed,
        phases.last_progress_at as progressed_at,
        epoch_us(index.ended_at) // 1000000 - epoch_us(phases.last_progress_at) // 1000000 as detection_seconds,
        if(phases.is_loss_assumed, null, coalesce(lost_work.seconds, 0)) as lost_work_measured_seconds,
        if(phases.is_loss_assumed, coalesce(lost_work.seconds, 0), null) as lost_work_assumed_seconds,
        coalesce(lost_work.gpu_seconds, 0) as lost_work_gpu_seconds,
        phases.stalled * index.gpus as stalled_gpu_seconds,
        coalesce(phases.restart_seconds, 0)
        * coalesce(index.next_gpus, index.gpus) as starting_gpu_seconds,
        coalesce(index.down_seconds, 0) * coalesce(index.next_gpus, index.gpus) as down_gpu_seconds
    from intermediate.interruptions__index as index
    inner join intermediate.interruptions__verdicts as verdicts
        on index.interruption_id = verdicts.interruption_id
    inner join phases
        on index.interruption_id = phases.interruption_id
    left join lost_work
        on index.interruption_id = lost_work.interruption_id
)

select
    interruption_id,
    incident_id,
    cluster,
    run_id,
    run,
    job_id,
    job_id_raw,
    attempt,
    run_attempt,
    started_at,
    ended_at as interrupted_at,
    next_started_at as resumed_at,
    gpus,
    nodes,
    class,
    is_planned,
    cause,
    label,
    category,
    hardware,
    confidence,
    class_confidence,
    runner_up_cause,
    runner_up_confidence,
    unknown_reason,
    rule,
    culprit_node,
    culprit_gpu,
    state as scheduler_state,
    exit_code,
    signal,
    progressed_at as last_progress_at,
    detection_seconds,
    down_seconds,
    least(
        greatest(date_diff('second', greatest(next_eligible_at, ended_at), next_started_at), 0), down_seconds
    ) as wait_seconds,
    restart_seconds,
    lost_work_measured_seconds,
    lost_work_assumed_seconds,
    coalesce(stalled_gpu_seconds, 0) + lost_work_gpu_seconds + starting_gpu_seconds + down_gpu_seconds
        as lost_gpu_seconds,
    stalled_gpu_seconds,
    lost_work_gpu_seconds,
    starting_gpu_seconds,
    down_gpu_seconds,
    if(next_started_at is null, null, if(job_id_raw = next_job_id_raw, 'automatic', 'manual')) as recovery,
    list_sort(
        list_distinct(
            list_concat(
                flags,
                list_filter(
                    [
                        if(is_cost_assumed, 'cost_assumed', null),
                        if(
                            cause in ('operator_change', 'time_limit') and progressed_at is null,
                            'progress_unobserved',
                            null
                        ),
                        if(next_started_at is null, 'not_resumed', null)
                    ],
                    lambda f: f is not null
                )
            )
        )
    ) as flags
from costed
