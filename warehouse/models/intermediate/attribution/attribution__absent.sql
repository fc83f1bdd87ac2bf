-- One row per interruption that the run went on after: the nodes that its next attempt did without.
-- A node in planned maintenance is none of them: it could not be used, whatever anyone thinks of it.
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__interruptions__index
-- Dirty: union all select index.interruption_id from intermediate.interruptions__index as index
-- Dirty: inner join delta.intermediate__runs__attempts as changed on index.run_id = changed.run_id
-- Dirty: and changed.run_attempt between index.run_attempt and index.run_attempt + 1
-- Dirty: union all select index.interruption_id from intermediate.interruptions__index as index
-- Dirty: inner join delta.intermediate__scheduler__node_states as states on index.cluster = states.cluster
-- Dirty: and index.next_started_at >= states.started_at
-- Dirty: and index.ended_at <= coalesce(states.observed_until, index.ended_at) where states.is_planned_rollout
-- Dirty: union all select index.interruption_id from intermediate.interruptions__index as index
-- Dirty: where index.cluster in (select cluster from delta.staging__calendar__windows)
-- Dirty: union all select index.interruption_id from intermediate.interruptions__index as index
-- Dirty: inner join intermediate.runs__attempts as attempts on index.run_id = attempts.run_id
-- Dirty: and attempts.run_attempt between index.run_attempt and index.run_attempt + 1
-- Dirty: semi join delta.staging__scheduler__host_lists as lists
-- Dirty: on attempts.cluster = lists.cluster and attempts.node_list = lists.node_list
with followed as (
    select
        record_id,
        node_list,
        lead(attempt_record_id) over (partition by run_id order by run_attempt) as next_record_id,
        lead(node_list) over (partition by run_id order by run_attempt) as next_node_list
    from intermediate.runs__attempts
),

unusable as (
    select
        cluster,
        started_at,
        ended_at,
        is_whole_cluster,
        nodes
    from staging.calendar__windows
    where is_maintenance
    union all
    select
        cluster,
        started_at,
        observed_until as ended_at,
        false as is_whole_cluster,
        [node] as nodes
    from intermediate.scheduler__node_states
    where is_planned_rollout
),

planned as (
    select
        index.interruption_id,
        flatten(list(unusable.nodes)) as nodes
    from intermediate.interruptions__index as index
    inner join unusable
        on
            index.cluster = unusable.cluster
            and index.next_started_at >= unusable.started_at
            and (unusable.ended_at is null or index.ended_at <= unusable.ended_at)
            and not unusable.is_whole_cluster
    group by index.interruption_id
),

pairs as (
    select
        index.interruption_id,
        index.cluster,
        index.ended_at,
        index.next_started_at,
        followed.next_record_id,
        followed.next_node_list,
        own.nodes
    from intermediate.interruptions__index as index
    inner join followed
        on index.record_id = followed.record_id
    inner join staging.scheduler__host_lists as own
        on index.cluster = own.cluster and followed.node_list = own.node_list
    semi join staging.scheduler__host_lists as next_lists
        on index.cluster = next_lists.cluster and followed.next_node_list = next_lists.node_list
    where len(own.nodes) >= 2
),

held as (
    select
        pairs.interruption_id,
        pairs.cluster,
        pairs.next_node_list,
        unnest(pairs.nodes) as node
    from pairs
),

held_next as (
    select
        host_lists.cluster,
        host_lists.node_list,
        unnest(host_lists.nodes) as node
    from staging.scheduler__host_lists as host_lists
    semi join pairs
        on host_lists.cluster = pairs.cluster and host_lists.node_list = pairs.next_node_list
),

absent as (
    select
        held.interruption_id,
        list(held.node order by held.node) as nodes
    from held
    anti join held_next
        on
            held.cluster = held_next.cluster
            and held.next_node_list = held_next.node_list
            and held.node = held_next.node
    group by held.interruption_id
)

select
    pairs.interruption_id,
    pairs.cluster,
    pairs.ended_at,
    pairs.next_started_at,
    pairs.next_record_id,
    len(pairs.nodes) as nodes,
    list_filter(
        coalesce(absent.nodes, []), lambda n: not list_contains(coalesce(planned.nodes, []), n)
    ) as left_out
from pairs
left join absent
    on pairs.interruption_id = absent.interruption_id
left join planned
    on pairs.interruption_id = planned.interruption_id
