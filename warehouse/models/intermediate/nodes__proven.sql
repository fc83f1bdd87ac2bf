-- One row per node and start of a job, with the instant by which a job that began then had run well on it: completed,
-- or a whole day since its start, or, where its training log tells, steps for a while. The earliest of these holds.
-- What stood on the node before that job began no longer stands.
-- Slice: cluster, node, started_at
with proofs as (
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
)

select
    cluster,
    node,
    started_at,
    min(proven_at) as proven_at
from proofs
group by cluster, node, started_at
