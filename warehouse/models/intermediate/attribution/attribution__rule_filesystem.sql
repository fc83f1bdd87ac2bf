-- One row per file system error in an attempt that failed.
-- On five nodes or more at once the service behind it is likelier.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'filesystem' as rule,
    if(crowds.nodes_at_once >= 5, 'filesystem_error_many', 'filesystem_error') as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__stops as stops
    on candidates.interruption_id = stops.interruption_id
inner join intermediate.attribution__crowds as crowds
    on candidates.evidence_id = crowds.evidence_id
where
    candidates.evidence_class = 'filesystem_error'
    and stops.state in ('FAILED', 'NODE_FAIL')
