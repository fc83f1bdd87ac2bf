-- One row per tracked run and cause that stopped it, in the order of the Llama 3 paper's Table 5.
-- `share` is of the run's unexpected interruptions, with Wilson's 95 % interval; planned stops and preemptions have
-- none.
with totals as (
    select
        cluster,
        run_id,
        run,
        elapsed_hours,
        unexpected
    from marts.runs
),

counted as (
    select
        cluster,
        run_id,
        cause,
        any_value(label) as label,
        any_value(category) as category,
        any_value(class) as class,
        count(*) as interruptions,
        count(distinct incident_id) as incidents,
        count(*) filter (where hardware = 'confirmed') as hardware_confirmed,
        count(*) filter (where hardware = 'suspected') as hardware_suspected,
        sum(lost_gpu_seconds)::bigint as lost_gpu_seconds
    from marts.interruptions
    group by cluster, run_id, cause
)

select
    counted.cluster,
    counted.run_id,
    totals.run,
    row_number() over (
        partition by counted.run_id
        order by
            causes.table5_row asc nulls last,
            counted.class = 'unexpected' desc,
            counted.cause asc
    ) as cause_order,
    counted.cause,
    counted.label,
    counted.category,
    counted.class,
    counted.interruptions,
    counted.incidents,
    counted.hardware_confirmed,
    counted.hardware_suspected,
    if(counted.class = 'unexpected', round(counted.interruptions / totals.unexpected, 6), null) as share,
    if(
        counted.class = 'unexpected', round(wilson_lower(counted.interruptions, totals.unexpected), 6), null
    ) as share_lower,
    if(
        counted.class = 'unexpected', round(wilson_upper(counted.interruptions, totals.unexpected), 6), null
    ) as share_upper,
    round(totals.elapsed_hours / counted.interruptions, 6) as mtti_hours,
    counted.lost_gpu_seconds,
    round(counted.lost_gpu_seconds / 3600, 6) as lost_gpu_hours
from counted
inner join totals
    on counted.run_id = totals.run_id
left join reference.causes as causes
    on counted.cause = causes.code
