-- One row per attempt that ran into its time limit, with no fault standing.
select
    candidates.interruption_id,
    candidates.evidence_id,
    'time_limit' as rule,
    'time_limit_reached' as weight_class
from intermediate.attribution__candidates as candidates
inner join intermediate.attribution__orderly as orderly
    on candidates.interruption_id = orderly.interruption_id
where
    candidates.kind = 'scheduler state'
    and orderly.is_orderly
    and orderly.is_time_limit
