-- Is it hardware?
with by_hardware as (
    select
        run_id,
        hardware,
        count(*) as interruptions,
        sum(lost_gpu_seconds) as lost_gpu_seconds
    from marts.interruptions
    where class = 'unexpected'
    group by run_id, hardware
)

select
    r.run,
    h.hardware,
    h.interruptions as stops,
    (100 * wilson_lower(h.interruptions, r.unexpected))::decimal(4, 1) as share_lower,
    (100 * h.interruptions / r.unexpected)::decimal(4, 1) as share_percent,
    (100 * wilson_upper(h.interruptions, r.unexpected))::decimal(4, 1) as share_upper,
    mtti_interval(r.elapsed_hours, h.interruptions).lower::decimal(9, 2) as mtti_lower,
    mtti(r.elapsed_hours, h.interruptions)::decimal(9, 2) as mtti_hours,
    mtti_interval(r.elapsed_hours, h.interruptions).upper::decimal(9, 2) as mtti_upper,
    gpu_hours(h.lost_gpu_seconds)::bigint as lost_gpu_hours
from by_hardware as h
inner join marts.runs as r on h.run_id = r.run_id
order by r.run, r.run_id, h.hardware;
