-- Which verdicts are weak and worth a look?
select
    interruption_id,
    interrupted_at,
    cause,
    confidence::decimal(3, 2) as confidence,
    runner_up_cause,
    runner_up_confidence::decimal(3, 2) as runner_up,
    culprit_node,
    gpu_hours(lost_gpu_seconds)::bigint as lost_gpu_hours,
    unknown_reason
from marts.interruptions
where confidence < 0.7 or class_confidence < 0.9 or cause = 'unknown'
order by lost_gpu_hours desc, interruption_id asc;
