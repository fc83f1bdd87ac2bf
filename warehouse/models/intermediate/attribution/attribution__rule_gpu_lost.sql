-- One row per lost GPU: Xid 79, or the kernel saying so without an Xid, or a GPU whose start-up failed.
-- When half a node's GPUs or more (at least four) go at once, the host or its power is behind it; on five nodes or more
-- at once, what they share.
with lost as (
    select
        candidates.interruption_id,
        candidates.evidence_id,
        crowds.nodes_at_once,
        count(distinct candidates.device) over (
            partition by candidates.interruption_id, candidates.node
        ) as devices_lost
    from intermediate.attribution__candidates as candidates
    inner join intermediate.attribution__crowds as crowds
        on candidates.evidence_id = crowds.evidence_id
    where candidates.evidence_class in ('xid_79', 'gpu_init_failed')
)

select
    interruption_id,
    evidence_id,
    'gpu_lost' as rule,
    case
        when nodes_at_once >= 5 then 'gpu_lost_wave'
        when devices_lost >= 4 then 'gpu_lost_many'
        else 'gpu_lost'
    end as weight_class
from lost
