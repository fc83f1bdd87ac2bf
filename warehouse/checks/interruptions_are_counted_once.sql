-- Every interruption stands once, belongs to an attempt that ended, and is counted in its run.
with counted as (
    select
        run_id,
        count(*) as interruptions,
        count(*) filter (where is_planned) as planned
    from marts.interruptions
    group by run_id
)

select
    'counted differently in marts.runs' as problem,
    runs.run_id as id
from marts.runs as runs
left join counted
    on runs.run_id = counted.run_id
where
    runs.interruptions <> coalesce(counted.interruptions, 0)
    or runs.planned <> coalesce(counted.planned, 0)
union all
select
    'stands more than once',
    interruption_id
from marts.interruptions
group by interruption_id
having count(*) > 1
union all
select
    'ends before it starts',
    interruption_id
from marts.interruptions
where interrupted_at < started_at or resumed_at < interrupted_at
