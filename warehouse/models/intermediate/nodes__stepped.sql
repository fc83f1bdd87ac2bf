-- One row per tracked attempt whose log tells of steps, start of it or of a piece, and node as in nodes__troubled_jobs.
-- A synchronous training cannot step while one of its GPUs is gone: what happened on a node ten minutes (the window
-- before the last progress) before a step of its run did not stop it.
-- `record_id` is that of the whole attempt.
-- Slice: record_id
-- Whole: intermediate.runs__attempts, intermediate.training__attempts
-- Dirty: select record_id from delta.intermediate__nodes__troubled_jobs
-- Dirty: union all select attempt_record_id from delta.intermediate__runs__attempts
-- Dirty: union all select attempt_record_id from intermediate.runs__attempts
-- Dirty: semi join delta.intermediate__training__attempts using (record_id)
select
    jobs.cluster,
    jobs.record_id,
    jobs.node,
    attempts.started_at,
    min(training.first_step_started_at) as first_step_started_at,
    max(training.last_progress_at) as last_progress_at,
    min(if(
        training.last_progress_at
        >= training.first_step_started_at + to_seconds(attribution.progress_before_seconds),
        training.first_step_started_at + to_seconds(attribution.progress_before_seconds),
        null
    )) as proven_at
from intermediate.nodes__troubled_jobs as jobs
inner join intermediate.runs__attempts as attempts
    on jobs.record_id = attempts.attempt_record_id
inner join intermediate.training__attempts as training
    on attempts.record_id = training.record_id
cross join settings.attribution as attribution
group by jobs.cluster, jobs.record_id, jobs.node, attempts.started_at
