-- One row per other GPU event that ends work: 62, 154 and further fatal codes; 46 and 109 hint at a hang at most.
select
    interruption_id,
    evidence_id,
    'gpu_other' as rule,
    case
        when evidence_class in ('xid_122', 'xid_123') then 'gpu_pmu_error'
        when evidence_class = 'xid_154' then 'gpu_recovery_action'
        when evidence_class in ('xid_46', 'xid_109') then 'gpu_hang'
        else 'gpu_fatal'
    end as weight_class
from intermediate.attribution__candidates
where
    evidence_class in ('xid_46', 'xid_109', 'xid_122', 'xid_123')
    or (
        is_fatal
        and evidence_class like 'xid_%'
        and code not in (48, 64, 74, 79, 94, 95, 119, 120, 140, 171, 172)
        and code not between 144 and 150
    )
