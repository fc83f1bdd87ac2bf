-- One row per cluster, job that a training log names, UTC day and reason why its lines enter no ledger.
-- They belong to no tracked attempt, or tell of a step alone among lines of far other steps (`out of order`). A job
-- that no [[runs]] entry tracks is a common reason, and no fault.
with unused as (
    select
        matches.cluster,
        matches.job_id,
        matches.event,
        matches.occurred_at,
        if(strays.log_record_id is null, matches.unmatched_reason, 'out of order') as reason
    from intermediate.training__matches as matches
    left join intermediate.training__strays as strays
        on matches.log_record_id = strays.log_record_id
    where matches.unmatched_reason is not null or strays.log_record_id is not null
)

select
    cluster,
    job_id,
    (occurred_at at time zone 'UTC')::date as day,
    reason,
    count(*) as events,
    count(*) filter (where event = 'step') as steps,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at
from unused
group by cluster, job_id, (occurred_at at time zone 'UTC')::date, reason
