-- One row per node that jobs held and UTC day on which they were last seen there: how many attempts, and for how long,
-- of all jobs and of tracked runs. An attempt counts whole on the day of its end, `observed_until`.
-- The day is told from microseconds below: with a time zone that takes four times as long.
-- Slice: cluster, date_trunc('day', make_timestamp(epoch_us(observed_until)))
-- Dirty: select cluster, date_trunc('day', make_timestamp(epoch_us(observed_until)))
-- Dirty: from delta.staging__scheduler__attempts
-- Dirty: union all select cluster, date_trunc('day', make_timestamp(epoch_us(observed_until)))
-- Dirty: from delta.intermediate__runs__tracked
-- Dirty: union all select cluster, date_trunc('day', make_timestamp(epoch_us(observed_until)))
-- Dirty: from staging.scheduler__attempts
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
with held as (
    select
        attempts.cluster,
        unnest(host_lists.nodes) as node,
        date_trunc('day', attempts.observed_until) as observed_until,
        epoch(attempts.observed_until)::bigint - epoch(attempts.started_at)::bigint as seconds,
        attempts.record_id
    from staging.scheduler__attempts as attempts
    inner join staging.scheduler__host_lists as host_lists
        on attempts.cluster = host_lists.cluster and attempts.node_list = host_lists.node_list
    where attempts.started_at is not null
)

select
    held.cluster,
    held.node,
    held.observed_until,
    count(*) as attempts,
    coalesce(sum(held.seconds), 0)::bigint as job_seconds,
    coalesce(sum(held.seconds) filter (where tracked.record_id is not null), 0)::bigint as tracked_seconds
from held
left join intermediate.runs__tracked as tracked
    on held.record_id = tracked.record_id
group by held.cluster, held.node, held.observed_until
