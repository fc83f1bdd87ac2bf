-- One row per health check that failed and names a part of the node. It weighs as a reason naming that part does.
with checks as (
    select
        interruption_id,
        evidence_id,
        evidence_class,
        replace(evidence_class, 'health_check_failed_', '') as part
    from intermediate.attribution__candidates
    where evidence_class like 'health_check_failed_%'
)

select
    interruption_id,
    evidence_id,
    'health_check' as rule,
    case part
        when 'gpu' then 'reason_gpu_lost'
        when 'gpu_memory' then 'reason_gpu_memory'
        when 'gpu_thermal' then 'reason_thermal'
        when 'filesystem' then 'reason_mount'
        when 'process' then 'reason_health_check'
        when 'other' then 'reason_health_check'
        else concat('reason_', part)
    end as weight_class
from checks
