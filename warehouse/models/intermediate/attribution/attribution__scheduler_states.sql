-- One row per interruption: how the scheduler says the attempt ended.
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
    record_id,
    concat_ws(
        ' ',
        state_raw,
        if(state = 'NODE_FAIL' or exit_code is null, null, concat('exit ', exit_code, ':', signal)),
        if(reason in ('None', '') or reason is null, null, concat('reason ', reason)),
        if(failed_node is null, null, concat('failed node ', failed_node))
    ) as text
from intermediate.interruptions__index
