-- One row per interruption: how the scheduler says the attempt ended, or that it did not end at all.
-- The exit code of NODE_FAIL varies by Slurm version and is no evidence.
select
    interruption_id,
    'scheduler state' as kind,
    concat('state_', lower(state)) as evidence_class,
    cluster,
    failed_node as node,
    'node' as device_kind,
    null::varchar as device,
    if(state = 'NODE_FAIL', null, exit_code) as code,
    ended_at as first_at,
    ended_at as last_at,
    1 as events,
    attempt_record_id as record_id,
    concat_ws(
        ' ',
        if(state = 'RESTARTED', 'training began again inside this attempt, by its log', state_raw),
        if(state = 'NODE_FAIL' or exit_code is null, null, concat('exit ', exit_code, ':', signal)),
        if(reason in ('None', '') or reason is null, null, concat('reason ', reason)),
        if(failed_node is null, null, concat('failed node ', failed_node))
    ) as text
from intermediate.interruptions__index
