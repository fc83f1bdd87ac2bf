-- One row per node and instant by which a job had run well on it: completed, or a whole day since its start, or, where
-- its training log tells, steps for a while.
-- What stood on the node before that job began no longer stands.
select
    cluster,
    node,
    started_at,
    least(
        if(state = 'COMPLETED', observed_until, timestamptz 'infinity'),
        started_at + interval 1 day
    ) as proven_at
from intermediate.nodes__troubled_jobs
where
    observed_until > started_at
    and (state = 'COMPLETED' or observed_until >= started_at + interval 1 day)
union all
select
    cluster,
    node,
    started_at,
    proven_at
from intermediate.nodes__stepped
where proven_at is not null
