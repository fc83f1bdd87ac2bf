-- One row per tracked run and UTC day: GPU-seconds in each state, and what share was productive.
-- `assumed_gpu_seconds` is the part of the day that no log measured.
select
    daily.cluster,
    daily.run_id,
    any_value(runs.run) as run,
    daily.day,
    sum(daily.seconds)::bigint as elapsed_seconds,
    sum(daily.gpu_seconds)::bigint as elapsed_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'productive'), 0)::bigint as productive_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'starting'), 0)::bigint as starting_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'checkpointing'), 0)::bigint as checkpointing_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'lost_work'), 0)::bigint as lost_work_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'stalled'), 0)::bigint as stalled_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'stopping'), 0)::bigint as stopping_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'suspended'), 0)::bigint as suspended_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'pending'), 0)::bigint as pending_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'down_unexpected'), 0)::bigint as down_unexpected_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'down_planned'), 0)::bigint as down_planned_gpu_seconds,
    coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'unobserved'), 0)::bigint as unobserved_gpu_seconds,
    sum(daily.assumed_gpu_seconds)::bigint as assumed_gpu_seconds,
    round(
        coalesce(sum(daily.gpu_seconds) filter (where daily.state = 'productive'), 0)
        / nullif(sum(daily.gpu_seconds), 0),
        6
    ) as effective_training_time
from intermediate.ledger__daily as daily
inner join (
    select distinct
        run_id,
        run
    from intermediate.runs__attempts
) as runs
    on daily.run_id = runs.run_id
group by daily.cluster, daily.run_id, daily.day
