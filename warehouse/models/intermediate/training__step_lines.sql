-- One row per tracked attempt and step that its log prints: when it was printed first and last.
-- Several ranks may print one step; one that is printed again later was done again.
-- Slice: record_id
select
    matches.record_id,
    matches.step,
    min(matches.occurred_at) as first_at,
    max(matches.occurred_at) as last_at,
    arg_min(matches.step_seconds, (matches.occurred_at, matches.step_seconds)) as step_seconds,
    max(matches.samples) as samples
from intermediate.training__matches as matches
anti join intermediate.training__strays as strays
    on matches.log_record_id = strays.log_record_id
where matches.event = 'step' and matches.record_id is not null and matches.step is not null
group by matches.record_id, matches.step
