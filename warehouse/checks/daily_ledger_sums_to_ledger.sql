-- The states of all days of a run sum to the GPU-seconds of its ledger exactly.
with days as (
    select
        run_id,
        sum(elapsed_gpu_seconds) as elapsed,
        sum(
            productive_gpu_seconds + starting_gpu_seconds + checkpointing_gpu_seconds + lost_work_gpu_seconds
            + stalled_gpu_seconds + stopping_gpu_seconds + suspended_gpu_seconds + pending_gpu_seconds
            + down_unexpected_gpu_seconds + down_planned_gpu_seconds + unobserved_gpu_seconds
        ) as states
    from marts.goodput_daily
    group by run_id
),

whole as (
    select
        run_id,
        sum(gpu_seconds) as elapsed
    from marts.ledger
    group by run_id
)

select
    whole.run_id,
    whole.elapsed as ledger_gpu_seconds,
    days.elapsed as daily_gpu_seconds,
    days.states as states_gpu_seconds
from whole
left join days
    on whole.run_id = days.run_id
where
    whole.elapsed is not null
    and (whole.elapsed is distinct from days.elapsed or whole.elapsed is distinct from days.states)
