-- One row per tracked run and UTC day: GPU-seconds in each state, and what share was productive.
-- `assumed_gpu_seconds` is the part of the day that no log measured.
with names as (
    select distinct
        run_id,
        run
    from intermediate.runs__attempts
),

days as (
    select
        cluster,
        run_id,
        day,
        sum(seconds)::bigint as elapsed_seconds,
        sum(gpu_seconds)::bigint as elapsed_gpu_seconds,
        sum(if(state = 'productive', gpu_seconds, 0))::bigint as productive_gpu_seconds,
        sum(if(state = 'starting', gpu_seconds, 0))::bigint as starting_gpu_seconds,
        sum(if(state = 'checkpointing', gpu_seconds, 0))::bigint as checkpointing_gpu_seconds,
        sum(if(state = 'lost_work', gpu_seconds, 0))::bigint as lost_work_gpu_seconds,
        sum(if(state = 'stalled', gpu_seconds, 0))::bigint as stalled_gpu_seconds,
        sum(if(state = 'stopping', gpu_seconds, 0))::bigint as stopping_gpu_seconds,
        sum(if(state = 'suspended', gpu_seconds, 0))::bigint as suspended_gpu_seconds,
        sum(if(state = 'pending', gpu_seconds, 0))::bigint as pending_gpu_seconds,
        sum(if(state = 'down_unexpected', gpu_seconds, 0))::bigint as down_unexpected_gpu_seconds,
        sum(if(state = 'down_planned', gpu_seconds, 0))::bigint as down_planned_gpu_seconds,
        sum(if(state = 'unobserved', gpu_seconds, 0))::bigint as unobserved_gpu_seconds,
        sum(assumed_gpu_seconds)::bigint as assumed_gpu_seconds
    from intermediate.ledger__daily
    group by cluster, run_id, day
)

select
    days.cluster,
    days.run_id,
    names.run,
    days.* exclude (cluster, run_id),
    round(days.productive_gpu_seconds / nullif(days.elapsed_gpu_seconds, 0), 6) as effective_training_time
from days
inner join names
    on days.run_id = names.run_id
