-- How far back do we lose work?
with saves as (
    select
        run_id,
        is_durable,
        blocking_seconds,
        date_diff('second', lag(begun_at) over (partition by run_id, run_attempt order by step), begun_at) as apart
    from marts.checkpoints
),

saving as (
    select
        run_id,
        count(*) as saves,
        count_if(not is_durable) as never_durable,
        median(apart) as apart,
        median(blocking_seconds) as blocking_seconds
    from saves
    group by run_id
),

losing as (
    select
        run_id,
        count(*) as stops,
        count(lost_work_measured_seconds) as measured,
        median(coalesce(lost_work_measured_seconds, lost_work_assumed_seconds)) as lost,
        max(coalesce(lost_work_measured_seconds, lost_work_assumed_seconds)) as lost_max,
        sum(lost_work_gpu_seconds) as lost_work_gpu_seconds
    from marts.interruptions
    group by run_id
)

select
    r.run,
    s.saves,
    s.never_durable,
    (s.apart / 60)::decimal(9, 1) as minutes_apart,
    s.blocking_seconds::decimal(9, 1) as blocking_seconds,
    l.stops,
    l.measured,
    (l.lost / 60)::decimal(9, 1) as lost_minutes,
    (l.lost_max / 60)::decimal(9, 1) as lost_minutes_max,
    gpu_hours(l.lost_work_gpu_seconds)::bigint as lost_work_gpu_hours
from marts.runs as r
left join saving as s on r.run_id = s.run_id
left join losing as l on r.run_id = l.run_id
order by r.run, r.run_id;
