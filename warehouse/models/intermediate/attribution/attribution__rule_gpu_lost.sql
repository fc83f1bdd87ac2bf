-- One row per lost GPU: Xid 79, or the kernel saying so without an Xid, or a GPU whose start-up failed.
-- When half a node's GPUs or more (at least four) go at once, the host or its power is behind it.
with lost as (
    select
        *,
        count(distinct device) over (partition by interruption_id, node) as devices_lost
    from intermediate.attribution__candidates
    where evidence_class in ('xid_79', 'gpu_init_failed')
)

select
    interruption_id,
    evidence_id,
    'gpu_lost' as rule,
    if(devices_lost >= 4, 'gpu_lost_many', 'gpu_lost') as weight_class
from lost
