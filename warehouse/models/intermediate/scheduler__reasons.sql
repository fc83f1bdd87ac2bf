-- One row per distinct reason a node was taken out for, with the evidence class of the first pattern it matches.
-- Slice: reason
-- Dirty: select reason from delta.staging__scheduler__node_states
-- Dirty: where (reason in (select reason from intermediate.scheduler__reasons))
-- Dirty: <> (reason in (select reason from staging.scheduler__node_states where reason is not null))
with reasons as (
    select distinct reason
    from staging.scheduler__node_states
    where reason is not null
),

matched as (
    select
        reasons.reason,
        patterns.evidence_class,
        patterns.is_person,
        patterns.is_planned_rollout,
        row_number() over (partition by reasons.reason order by patterns.priority) as match_rank
    from reasons
    inner join reference.reason_patterns as patterns
        on regexp_matches(reasons.reason, patterns.pattern)
)

select
    reason,
    evidence_class,
    is_person,
    is_planned_rollout
from matched
where match_rank = 1
