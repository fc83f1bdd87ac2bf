-- One row per start of a tracked attempt whose log tells of steps, and node of it that ever had a fatal event.
-- A synchronous training cannot step while one of its GPUs is gone: what happened on a node ten minutes (the window
-- before the last progress) before a step of its run did not stop it.
with troubled as (
    select distinct
        cluster,
        node
    from intermediate.hardware__events
    where is_fatal
)

select
    nodes.cluster,
    nodes.node,
    nodes.started_at,
    min(training.first_step_started_at) as first_step_started_at,
    max(training.last_progress_at) as last_progress_at,
    min(if(
        training.last_progress_at
        >= training.first_step_started_at + to_seconds(attribution.progress_before_seconds),
        training.first_step_started_at + to_seconds(attribution.progress_before_seconds),
        null
    )) as proven_at
from intermediate.runs__attempt_nodes as nodes
semi join troubled
    on nodes.cluster = troubled.cluster and nodes.node = troubled.node
inner join intermediate.training__attempts as training
    on nodes.record_id = training.record_id
cross join settings.attribution as attribution
group by nodes.cluster, nodes.node, nodes.started_at
