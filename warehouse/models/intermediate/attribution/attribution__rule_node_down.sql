-- One row per sign that a node stopped answering: the attempt ended NODE_FAIL, or Slurm set the node down.
-- It is an outcome of many faults, so it speaks for each of them a little, and for `node_unresponsive` most.
select
    interruption_id,
    evidence_id,
    'node_down' as rule,
    'node_down' as weight_class
from intermediate.attribution__candidates
where evidence_class in ('state_node_fail', 'state_boot_fail', 'reason_not_responding')
