-- One row per interruption and rank that did not report a time-out which nearly all other ranks reported: it is the one
-- that hangs, the others wait for it.
-- Ranks are known from a rank map, else nodes stand for them. Where fewer than half report, silence means nothing.
-- Slice: interruption_id
-- Whole: intermediate.training__events, intermediate.runs__attempt_nodes
-- Dirty: select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from intermediate.attribution__stops
-- Dirty: where record_id in (select record_id from delta.intermediate__training__events)
-- Dirty: or record_id in (select record_id from delta.intermediate__runs__attempt_nodes)
-- Dirty: or cluster in (select cluster from delta.staging__fleet__ranks)
with reported as (
    select
        stops.interruption_id,
        stops.record_id,
        stops.cluster,
        events.job_id,
        events.rank,
        events.node,
        events.occurred_at,
        events.seconds,
        events.log_record_id
    from intermediate.training__events as events
    inner join intermediate.attribution__stops as stops
        on events.record_id = stops.record_id
    where events.event = 'nccl_timeout' and events.occurred_at >= stops.opens_at
),

timeouts as (
    select
        interruption_id,
        min(record_id) as record_id,
        min(cluster) as cluster,
        min(job_id) as job_id,
        count(distinct rank) as ranks,
        count(distinct node) as nodes,
        min(occurred_at - to_milliseconds(least(coalesce(1000 * seconds, 0), 864000000)::bigint)) as hung_at,
        max(occurred_at) as last_at,
        arg_min(log_record_id, (occurred_at, log_record_id)) as log_record_id
    from reported
    group by interruption_id
),

expected as (
    select
        timeouts.interruption_id,
        ranks.rank,
        ranks.node
    from timeouts
    inner join staging.fleet__ranks as ranks
        on timeouts.cluster = ranks.cluster and (ranks.job_id is null or timeouts.job_id = ranks.job_id)
    where timeouts.ranks > 0
    union all
    select
        timeouts.interruption_id,
        null as rank,
        nodes.node
    from timeouts
    inner join intermediate.runs__attempt_nodes as nodes
        on timeouts.record_id = nodes.record_id
    anti join staging.fleet__ranks as ranks
        on timeouts.cluster = ranks.cluster and (ranks.job_id is null or timeouts.job_id = ranks.job_id)
    where timeouts.nodes > 0
),

silent as (
    select
        expected.interruption_id,
        expected.rank,
        expected.node,
        count(*) over (partition by expected.interruption_id) as silent_ones
    from expected
    anti join reported
        on
            expected.interruption_id = reported.interruption_id
            and if(expected.rank is null, expected.node = reported.node, expected.rank = reported.rank)
),

counted as (
    select
        interruption_id,
        count(*) as expected_ones
    from expected
    group by interruption_id
)

select
    silent.interruption_id,
    'training log' as kind,
    'silent_rank' as evidence_class,
    timeouts.cluster,
    silent.node,
    'log' as device_kind,
    null::varchar as device,
    silent.rank as code,
    timeouts.hung_at as first_at,
    timeouts.last_at,
    1 as events,
    timeouts.log_record_id as record_id,
    concat(
        if(silent.rank is null, 'no rank of this node', concat('rank ', silent.rank)),
        ' reports the time-out that ',
        counted.expected_ones - silent.silent_ones,
        ' of ',
        counted.expected_ones,
        if(silent.rank is null, ' nodes', ' ranks'),
        ' report'
    ) as text
from silent
inner join timeouts
    on silent.interruption_id = timeouts.interruption_id
inner join counted
    on silent.interruption_id = counted.interruption_id
where silent.silent_ones <= 8 and 2 * silent.silent_ones <= counted.expected_ones
