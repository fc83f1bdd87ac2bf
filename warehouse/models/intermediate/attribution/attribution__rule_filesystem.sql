-- One row per file system error in an attempt that failed.
-- On five nodes or more at once the service behind it is likelier.
with errors as (
    select
        candidates.*,
        count(distinct candidates.node) over (partition by candidates.interruption_id) as nodes_hit
    from intermediate.attribution__candidates as candidates
    inner join intermediate.interruptions__index as index
        on candidates.interruption_id = index.interruption_id
    where
        candidates.evidence_class = 'filesystem_error'
        and index.state in ('FAILED', 'NODE_FAIL')
)

select
    interruption_id,
    evidence_id,
    'filesystem' as rule,
    if(nodes_hit >= 5, 'filesystem_error_many', 'filesystem_error') as weight_class
from errors
