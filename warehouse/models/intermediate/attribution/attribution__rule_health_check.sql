-- One row per health check that failed and names a part of the node. It weighs as a reason naming that part does.
with checks as (
    select
        interruption_id,
        evidence_id,
        text,
        replace(evidence_class, 'health_check_failed_', '') as part
    from intermediate.attribution__candidates
    where evidence_class like 'health_check_failed_%'
)

select
    interruption_id,
    evidence_id,
    'health_check' as rule,
    case
        when part = 'gpu_memory' and regexp_matches(text, '(?i)\bSRAM\b') then 'reason_gpu_sram'
        when part = 'gpu' then 'reason_gpu_lost'
        when part = 'gpu_memory' then 'reason_gpu_memory'
        when part = 'gpu_thermal' then 'reason_thermal'
        when part = 'filesystem' then 'reason_mount'
        when part = 'process' then 'reason_health_check'
        when part = 'other' then 'reason_health_check'
        else concat('reason_', part)
    end as weight_class
from checks
