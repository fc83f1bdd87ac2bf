-- One row per node that the run's next attempt did without: whoever restarted it blames the node, and names no part.
select
    interruption_id,
    evidence_id,
    'left_out' as rule,
    'node_left_out' as weight_class
from intermediate.attribution__candidates
where evidence_class = 'node_left_out'
