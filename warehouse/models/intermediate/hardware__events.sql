-- One row per hardware event with a time and a node, its class refined by what the machine said just before or after.
-- A lost GPU told without an Xid is the same fault as Xid 79, and carries its code. A boot that an orderly restart
-- announced is `boot_orderly`, any other `boot_unexpected`; a link that is up again within a minute is `link_bounce`;
-- what a board management controller takes back within a minute is `..._brief`.
-- Slice: cluster, node
with restarts as (
    select distinct
        cluster,
        node,
        occurred_at as restarted_at
    from staging.hardware__events
    where event_class = 'reboot' and occurred_at is not null
),

ups as (
    select distinct
        cluster,
        node,
        device,
        occurred_at as up_at
    from staging.hardware__events
    where event_class = 'link_up' and occurred_at is not null
),

boots as (
    select
        events.record_id,
        if(
            restarts.restarted_at >= events.occurred_at - interval 15 minute, 'boot_orderly', 'boot_unexpected'
        ) as evidence_class,
        false as is_passing
    from staging.hardware__events as events
    asof left join restarts
        on
            events.cluster = restarts.cluster
            and events.node = restarts.node
            and events.occurred_at >= restarts.restarted_at
    where events.event_class = 'boot'
),

bounces as (
    select
        events.record_id,
        'link_bounce' as evidence_class,
        true as is_passing
    from staging.hardware__events as events
    asof inner join ups
        on
            events.cluster = ups.cluster
            and events.node = ups.node
            and events.device = ups.device
            and events.occurred_at <= ups.up_at
    where events.event_class = 'link_down' and ups.up_at <= events.occurred_at + interval 1 minute
),

taken_back as (
    select distinct
        cluster,
        node,
        event_class,
        unit,
        occurred_at as ended_at
    from staging.hardware__events
    where event_class like 'sel_%' and severity = 'info' and occurred_at is not null
),

brief as (
    select
        events.record_id,
        concat(events.evidence_class, '_brief') as evidence_class,
        true as is_passing
    from staging.hardware__events as events
    asof inner join taken_back
        on
            events.cluster = taken_back.cluster
            and events.node = taken_back.node
            and events.event_class = taken_back.event_class
            and events.unit = taken_back.unit
            and events.occurred_at <= taken_back.ended_at
    where
        events.event_class like 'sel_%'
        and (events.severity is null or events.severity <> 'info')
        and taken_back.ended_at <= events.occurred_at + interval 1 minute
),

refined as (
    select * from boots
    union all
    select * from bounces
    union all
    select * from brief
)

select
    events.* exclude (evidence_class, is_fatal, code),
    if(events.event_class = 'gpu_lost', 79, events.code) as code,
    coalesce(refined.evidence_class, events.evidence_class) as evidence_class,
    (events.is_fatal and not coalesce(refined.is_passing, false)) as is_fatal
from staging.hardware__events as events
left join refined
    on events.record_id = refined.record_id
where events.occurred_at is not null and events.node is not null
