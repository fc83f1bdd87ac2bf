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
        cluster,
        unnest(node_names) as node,
        state,
        started_at,
        ended_at,
        observed_until
    from staging.scheduler__attempts
    where started_at is not null and node_names is not null
)

select held.*
from held
semi join troubled
    on held.cluster = troubled.cluster and held.node = troubled.node
