-- What part of each day was effective training, and where did the rest go?
select
    run,
    day,
    (100 * effective_training_time)::decimal(4, 1) as effective,
    (100 * lost_work_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as lost_work,
    (100 * starting_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as starting,
    (100 * stalled_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as stalled,
    (100 * down_unexpected_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as down_unexpected,
    (100 * down_planned_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as down_planned,
    (100 * checkpointing_gpu_seconds / elapsed_gpu_seconds)::decimal(4, 1) as checkpointing
from marts.goodput_daily
where elapsed_gpu_seconds > 0
order by effective_training_time, run, day;
