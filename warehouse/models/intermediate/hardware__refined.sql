-- One row per hardware event that is told apart from its like by what the machine said just before or after.
-- A boot that an orderly restart announced is `boot_orderly`, any other `boot_unexpected`; a link that is up again
-- within a minute is `link_bounce`; what a board management controller takes back within a minute is `..._brief`.
-- Slice: cluster, node
-- Dirty: select cluster, node from delta.staging__hardware__events
-- Dirty: where event_class in ('boot', 'reboot', 'link_up', 'link_down') or event_class like 'sel_%'
with events as materialized (
    select
        record_id,
        cluster,
        node,
        device,
        unit,
        event_class,
        evidence_class,
        severity,
        occurred_at
    from staging.hardware__events
    where event_class in ('boot', 'reboot', 'link_up', 'link_down') or event_class like 'sel_%'
),

restarts as (
    select distinct
        cluster,
        node,
        occurred_at as restarted_at
    from events
    where event_class = 'reboot' and occurred_at is not null
),

ups as (
    select distinct
        cluster,
        node,
        device,
        occurred_at as up_at
    from events
    where event_class = 'link_up' and occurred_at is not null
),

boots as (
    select
        events.record_id,
        events.cluster,
        events.node,
        events.occurred_at,
        if(
            restarts.restarted_at >= events.occurred_at - interval 15 minute, 'boot_orderly', 'boot_unexpected'
        ) as evidence_class,
        false as is_passing
    from events
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
        events.cluster,
        events.node,
        events.occurred_at,
        'link_bounce' as evidence_class,
        true as is_passing
    from events
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
    from events
    where event_class like 'sel_%' and severity = 'info' and occurred_at is not null
),

brief as (
    select
        events.record_id,
        events.cluster,
        events.node,
        events.occurred_at,
        concat(events.evidence_class, '_brief') as evidence_class,
        true as is_passing
    from events
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
)

select * from boots
union all
select * from bounces
union all
select * from brief
