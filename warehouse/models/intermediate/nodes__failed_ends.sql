-- One row per node and instant at which any job, tracked or not, ended there otherwise than completed.
-- Only nodes that ever had a fatal event matter: what came just before such an end is no background.
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
        ended_at
    from staging.scheduler__attempts
    where ended_at is not null and state <> 'COMPLETED' and node_names is not null
)

select distinct held.*
from held
semi join troubled
    on held.cluster = troubled.cluster and held.node = troubled.node
