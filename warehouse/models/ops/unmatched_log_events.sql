-- One row per cluster, job that a training log names, UTC day and reason why its lines belong to no tracked attempt.
-- They enter no ledger. A job that no [[runs]] entry tracks is a common reason, and no fault.
select
    cluster,
    job_id,
    (occurred_at at time zone 'UTC')::date as day,
    unmatched_reason as reason,
    count(*) as events,
    count(*) filter (where event = 'step') as steps,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at
from intermediate.training__matches
where unmatched_reason is not null
group by cluster, job_id, (occurred_at at time zone 'UTC')::date, unmatched_reason
