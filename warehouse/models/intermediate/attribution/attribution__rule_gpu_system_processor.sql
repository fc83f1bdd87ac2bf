-- One row per GSP time-out (Xid 119, 120); a wave over many nodes at once points at the driver.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'gpu_system_processor' as rule,
    if(crowds.nodes_at_once >= 5, 'gsp_wave', 'gsp_timeout') as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__crowds as crowds
    on candidates.evidence_id = crowds.evidence_id
where candidates.evidence_class in ('xid_119', 'xid_120')
