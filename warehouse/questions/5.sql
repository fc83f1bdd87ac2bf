-- How long do we hang before we notice, and what does a restart cost?
select
    label,
    count(*) as stops,
    count(detection_seconds) as with_log,
    (median(detection_seconds) / 60)::decimal(9, 1) as hang_minutes,
    (quantile_cont(detection_seconds, 0.9) / 60)::decimal(9, 1) as hang_p90,
    (median(down_seconds) / 60)::decimal(9, 1) as down_minutes,
    (median(restart_seconds) / 60)::decimal(9, 1) as starting_minutes,
    gpu_hours(sum(stalled_gpu_seconds))::bigint as hang_gpu_hours,
    gpu_hours(sum(down_gpu_seconds + starting_gpu_seconds))::bigint as restart_gpu_hours
from marts.interruptions
group by label
order by hang_gpu_hours desc nulls last, label asc;
