-- One row per interruption of a tracked run: when it stopped, why, how sure that is, and what it cost.
with phases as (
    select
        interruption_id,
        tail as lost_work_assumed_seconds,
        lead(starting) over (partition by run_id order by run_attempt) as restart_seconds
    from intermediate.ledger__phases
),

costed as (
    select
        verdicts.*,
        phases.restart_seconds,
        phases.lost_work_assumed_seconds,
        phases.lost_work_assumed_seconds * verdicts.gpus as lost_work_gpu_seconds,
        coalesce(phases.restart_seconds, 0)
        * coalesce(verdicts.next_gpus, verdicts.gpus) as starting_gpu_seconds,
        coalesce(verdicts.down_seconds, 0) * coalesce(verdicts.next_gpus, verdicts.gpus) as down_gpu_seconds
    from intermediate.interruptions__verdicts as verdicts
    inner join phases
        on verdicts.interruption_id = phases.interruption_id
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
    runner_up_cause,
    runner_up_confidence,
    unknown_reason,
    rule,
    culprit_node,
    culprit_gpu,
    state as scheduler_state,
    exit_code,
    signal,
    null::timestamptz as last_progress_at,
    null::bigint as detection_seconds,
    down_seconds,
    least(
        greatest(date_diff('second', greatest(next_eligible_at, ended_at), next_started_at), 0), down_seconds
    ) as wait_seconds,
    restart_seconds,
    null::bigint as lost_work_measured_seconds,
    lost_work_assumed_seconds,
    lost_work_gpu_seconds + starting_gpu_seconds + down_gpu_seconds as lost_gpu_seconds,
    null::bigint as stalled_gpu_seconds,
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
                        'cost_assumed',
                        if(cause in ('operator_change', 'time_limit'), 'progress_unobserved', null),
                        if(next_started_at is null, 'not_resumed', null)
                    ],
                    lambda f: f is not null
                )
            )
        )
    ) as flags
from costed
