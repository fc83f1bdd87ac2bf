-- One row per NVLink or NVSwitch fault: Xid 74, fatal Xid 144 to 150, fatal SXid.
select
    interruption_id,
    evidence_id,
    'gpu_nvlink' as rule,
    'nvlink_fault' as weight_class
from intermediate.attribution__candidates
where
    evidence_class in ('xid_74', 'sxid_fatal')
    or (code between 144 and 150 and evidence_class like 'xid_%' and is_fatal)
