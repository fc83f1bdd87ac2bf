-- One row per node of an attempt of a tracked run, with how long events on the node belong to that attempt.
-- After its end, an event belongs to the last tracked attempt that held the node until another one starts there; null
-- where none does for as long as anything may count.
-- Settles: started_at
-- Dirty: select started_at from delta.intermediate__runs__attempts
-- Dirty: union all select attempts.started_at from intermediate.runs__attempts as attempts
-- Dirty: cross join intermediate.attribution__horizon as horizon
-- Dirty: cross join (select min(started_at) as started_at from delta.intermediate__runs__attempts) as changed
-- Dirty: where attempts.observed_until + to_seconds(horizon.seconds + 1) >= changed.started_at
with held as (
    select
        attempts.cluster,
        attempts.run_id,
        attempts.record_id,
        unnest(host_lists.nodes) as node,
        attempts.started_at,
        attempts.ended_at,
        attempts.observed_until,
        -- An attempt without length must not find its own start.
        attempts.observed_until
        + if(attempts.started_at = attempts.observed_until, interval 1 microsecond, interval 0 second) as free_from
    from intermediate.runs__attempts as attempts
    inner join staging.scheduler__host_lists as host_lists
        on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
),

followed as materialized (
    select
        *,
        lead(started_at) over (partition by cluster, node order by started_at) as following_at
    from held
),

shared_nodes as (
    select distinct
        cluster,
        node
    from followed
    where following_at < free_from
),

starts as (
    select distinct
        followed.cluster,
        followed.node,
        followed.started_at as next_started_at
    from followed
    semi join shared_nodes
        on followed.cluster = shared_nodes.cluster and followed.node = shared_nodes.node
),

-- Where attempts share a node the next start may lie before this end; only those need a search.
sharing as (
    select
        followed.* exclude (following_at),
        starts.next_started_at as owned_until
    from followed
    asof left join starts
        on
            followed.cluster = starts.cluster
            and followed.node = starts.node
            and followed.free_from <= starts.next_started_at
    where followed.following_at < followed.free_from
),

alone as (
    select
        * exclude (following_at),
        following_at as owned_until
    from followed
    where following_at is null or following_at >= free_from
),

owned as (
    select * from alone
    union all by name
    select * from sharing
)

select
    owned.* exclude (free_from, owned_until),
    if(owned.owned_until <= owned.free_from + to_seconds(horizon.seconds), owned.owned_until, null) as owned_until
from owned
cross join intermediate.attribution__horizon as horizon
