-- One row per job attempt, tracked or not, and node of it that ever had a fatal event.
with troubled as (
    select distinct
        cluster,
        node
    from intermediate.hardware__events
    where is_fatal
),

held as (
    select
        attempts.cluster,
        unnest(host_lists.nodes) as node,
        attempts.state,
        attempts.started_at,
        attempts.ended_at,
        attempts.observed_until
    from staging.scheduler__attempts as attempts
    inner join staging.scheduler__host_lists as host_lists
        on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
    where attempts.started_at is not null
)

select held.*
from held
semi join troubled
    on held.cluster = troubled.cluster and held.node = troubled.node
