-- One row per node and instant by which a job had run well on it: completed, or a whole day since its start.
-- Only nodes that ever had a fatal event matter: what stood there before that job began no longer stands.
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
        started_at,
        observed_until,
        state
    from staging.scheduler__attempts
    where started_at is not null and observed_until > started_at and node_names is not null
),

jobs as (
    select held.*
    from held
    semi join troubled
        on held.cluster = troubled.cluster and held.node = troubled.node
    where held.state = 'COMPLETED' or held.observed_until >= held.started_at + interval 1 day
)

select
    cluster,
    node,
    started_at,
    least(
        if(state = 'COMPLETED', observed_until, timestamptz 'infinity'),
        started_at + interval 1 day
    ) as proven_at
from jobs
