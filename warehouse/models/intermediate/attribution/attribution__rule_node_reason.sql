-- One row per drain or down reason that names a part of the node.
select
    interruption_id,
    evidence_id,
    'node_reason' as rule,
    if(
        evidence_class = 'reason_gpu_memory' and regexp_matches(text, '(?i)\bSRAM\b'), 'reason_gpu_sram', evidence_class
    ) as weight_class
from intermediate.attribution__candidates
where
    kind = 'node state'
    and not is_planned_rollout
    and evidence_class in (
        'reason_gpu_memory', 'reason_gpu_lost', 'reason_gsp', 'reason_nvlink', 'reason_disk', 'reason_memory',
        'reason_cpu', 'reason_power', 'reason_thermal', 'reason_chassis', 'reason_mount', 'reason_kernel',
        'reason_boot_failed', 'reason_sdc', 'reason_health_check'
    )
