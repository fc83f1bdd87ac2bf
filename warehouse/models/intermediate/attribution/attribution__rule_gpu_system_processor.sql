-- One row per GSP time-out (Xid 119, 120); a wave over many nodes within the hour points at the driver.
with timeouts as (
    select
        *,
        count(distinct node) over (partition by interruption_id) as nodes_hit
    from intermediate.attribution__candidates
    where evidence_class in ('xid_119', 'xid_120')
)

select
    interruption_id,
    evidence_id,
    'gpu_system_processor' as rule,
    if(nodes_hit >= 5, 'gsp_wave', 'gsp_timeout') as weight_class
from timeouts
