-- One row per start of a tracked attempt whose log tells of steps, and node of it that ever had a fatal event.
-- A synchronous training cannot step while one of its GPUs is gone: what happened on a node ten minutes (the window
-- before the last progress) before a step of its run did not stop it.
-- Slice: cluster, node, started_at
-- Dirty: select cluster, node, started_at from delta.intermediate__runs__attempt_nodes
-- Dirty: union all select cluster, node, started_at from intermediate.runs__attempt_nodes
-- Dirty: where record_id in (select record_id from delta.intermediate__training__attempts)
-- Dirty: or node in (select node from delta.intermediate__nodes__troubled)
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
semi join intermediate.nodes__troubled as troubled
    on nodes.cluster = troubled.cluster and nodes.node = troubled.node
inner join intermediate.training__attempts as training
    on nodes.record_id = training.record_id
cross join settings.attribution as attribution
group by nodes.cluster, nodes.node, nodes.started_at
