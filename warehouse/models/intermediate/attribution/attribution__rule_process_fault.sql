-- One row per GPU fault that programs raise (Xid 13, 31): it speaks for a program's error, weakly.
select
    interruption_id,
    evidence_id,
    'process_fault' as rule,
    'gpu_process_fault' as weight_class
from intermediate.attribution__candidates
where evidence_class in ('xid_13', 'xid_31')
