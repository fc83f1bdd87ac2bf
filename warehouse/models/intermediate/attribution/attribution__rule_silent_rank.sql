-- One row per rank, or node, that alone does not report a time-out of NCCL: the others wait for it.
select
    interruption_id,
    evidence_id,
    'silent_rank' as rule,
    'silent_rank' as weight_class
from intermediate.attribution__candidates
where evidence_class = 'silent_rank'
