-- How often is a stop part of a crash loop?
with by_incident as (
    select
        run_id,
        run,
        incident_id,
        count(*) as stops,
        sum(lost_gpu_seconds) as lost_gpu_seconds
    from marts.interruptions
    group by run_id, run, incident_id
)

select
    run,
    stops as stops_in_a_row,
    count(*) as incidents,
    count(*) * stops as interruptions,
    gpu_hours(sum(lost_gpu_seconds))::bigint as lost_gpu_hours,
    (gpu_hours(sum(lost_gpu_seconds)) / count(*))::bigint as gpu_hours_per_incident
from by_incident
group by run, run_id, stops
order by run, run_id, stops;
