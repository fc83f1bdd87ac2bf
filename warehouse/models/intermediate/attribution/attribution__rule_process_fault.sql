-- One row per GPU fault that programs raise (Xid 13, 31) in an attempt that failed by itself: it speaks for a program's
-- error, weakly; on five nodes or more at once, strongly. Who was cancelled, or reached a limit, ended otherwise.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'process_fault' as rule,
    if(crowds.nodes_at_once >= 5, 'gpu_process_fault_many', 'gpu_process_fault') as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__stops as stops
    on candidates.interruption_id = stops.interruption_id
inner join intermediate.attribution__crowds as crowds
    on candidates.evidence_id = crowds.evidence_id
where
    candidates.evidence_class in ('xid_13', 'xid_31')
    and stops.state in ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY')
