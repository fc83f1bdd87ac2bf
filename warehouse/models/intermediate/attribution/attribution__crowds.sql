-- One row per hardware event in the window of an interruption: on how many of its nodes the same kind of event began
-- within a minute of it. Over thousands of nodes some show it in any hour; what many show at once has one cause.
with nodes as (
    select
        interruption_id,
        evidence_class,
        node,
        min(first_at) as first_at
    from intermediate.attribution__candidates
    where kind = 'hardware event' and node is not null
    group by interruption_id, evidence_class, node
),

counted as (
    select
        interruption_id,
        evidence_class,
        node,
        count(*) over (
            partition by interruption_id, evidence_class
            order by first_at
            range between interval 1 minute preceding and interval 1 minute following
        ) as nodes_at_once
    from nodes
)

select
    candidates.interruption_id,
    candidates.evidence_id,
    counted.nodes_at_once
from intermediate.attribution__candidates as candidates
inner join counted
    on
        candidates.interruption_id = counted.interruption_id
        and candidates.evidence_class = counted.evidence_class
        and candidates.node = counted.node
where candidates.kind = 'hardware event'
