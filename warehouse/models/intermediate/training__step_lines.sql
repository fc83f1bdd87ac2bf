-- One row per tracked attempt and step that its log prints: when it was printed first and last.
-- Several ranks may print one step; one that is printed again later was done again.
select
    record_id,
    step,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at,
    arg_min(step_seconds, occurred_at) as step_seconds,
    max(samples) as samples
from intermediate.training__matches
where event = 'step' and record_id is not null and step is not null
group by record_id, step
