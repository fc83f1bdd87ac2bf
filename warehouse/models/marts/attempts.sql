-- One row per job attempt of any job: one allocation from start to end.
-- `infrastructure_verdict` says whether the machines ended it: by the interruption's verdict where the attempt is
-- tracked, else by what the scheduler says.
-- Slice: record_id
with judged as (
    select
        attempts.*,
        tracked.run_id,
        verdicts.hardware,
        verdicts.cause
    from staging.scheduler__attempts as attempts
    left join intermediate.runs__attempts as tracked
        on attempts.record_id = tracked.record_id
    left join intermediate.interruptions__verdicts as verdicts
        on attempts.record_id = verdicts.record_id
)

select
    cluster,
    job_id,
    job_id_raw,
    attempt,
    run_id,
    job_name,
    "user",
    account,
    "partition",
    qos,
    state,
    state_raw,
    cancelled_by_uid,
    exit_code,
    signal,
    derived_exit_code,
    reason,
    submitted_at,
    eligible_at,
    started_at,
    ended_at,
    elapsed_seconds,
    suspended_seconds,
    time_limit_seconds,
    cpus,
    gpus,
    gpu_type,
    nodes,
    node_list,
    failed_node,
    case
        when ended_at is null then null
        when hardware in ('confirmed', 'suspected') then concat('infrastructure: ', cause)
        when hardware = 'no' then concat('not infrastructure: ', cause)
        when state in ('NODE_FAIL', 'BOOT_FAIL') then 'infrastructure: node_unresponsive'
        when state = 'COMPLETED' then 'not infrastructure'
        else 'unknown'
    end as infrastructure_verdict,
    record_id,
    flags
from judged
