-- One row per interruption and node that the run's next attempt did without, where it kept most of the others.
-- Whoever restarts a run leaves out the node they blame. How often a node is left out by chance is counted over the
-- attempts of the cluster, with a prior of one node in two hundred that counts for twenty.
with followed as (
    select
        record_id,
        run_id,
        node_names,
        lead(attempt_record_id) over (partition by run_id order by run_attempt) as next_record_id,
        lead(node_names) over (partition by run_id order by run_attempt) as next_node_names
    from intermediate.runs__attempts
),

-- A node in planned maintenance could not be used, whatever anyone thinks of it.
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

compared as (
    select
        index.interruption_id,
        index.cluster,
        index.ended_at,
        index.next_started_at,
        followed.next_record_id,
        len(followed.node_names) as nodes,
        list_filter(
            followed.node_names,
            lambda n: not list_contains(followed.next_node_names, n)
            and not list_contains(coalesce(planned.nodes, []), n)
        ) as left_out
    from intermediate.interruptions__index as index
    inner join followed
        on index.record_id = followed.record_id
    left join planned
        on index.interruption_id = planned.interruption_id
    where
        followed.next_node_names is not null
        and len(followed.node_names) >= 2
),

rates as (
    select
        cluster,
        (sum(len(left_out)) + 0.1) / (sum(nodes) + 20) as chance
    from compared
    group by cluster
)

select
    compared.interruption_id,
    'scheduler state' as kind,
    'node_left_out' as evidence_class,
    compared.cluster,
    unnest(compared.left_out) as node,
    'node' as device_kind,
    null::varchar as device,
    null::bigint as code,
    compared.next_started_at as first_at,
    compared.next_started_at as last_at,
    1 as events,
    rates.chance,
    compared.next_record_id as record_id,
    'the next attempt does without this node' as text
from compared
inner join rates
    on compared.cluster = rates.cluster
where len(compared.left_out) between 1 and least(16, compared.nodes // 2)
