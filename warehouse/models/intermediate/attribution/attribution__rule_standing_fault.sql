-- One row per fatal fault that stood on a node before the attempt began and was never cleared.
select
    interruption_id,
    evidence_id,
    'standing_fault' as rule,
    case
        when evidence_class = 'standing_xid_79' then 'standing_gpu_fault'
        when evidence_class in ('standing_xid_119', 'standing_xid_120') then 'standing_gsp'
        when evidence_class in ('standing_xid_48', 'standing_xid_64', 'standing_xid_140') then 'standing_gpu_memory'
        when device_kind = 'gpu' then 'standing_gpu_fault'
        else 'standing_other'
    end as weight_class
from intermediate.attribution__candidates
where kind = 'standing fault'
