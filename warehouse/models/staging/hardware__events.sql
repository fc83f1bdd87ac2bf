-- One row per thing a machine reported, each record once (the earliest telling holds), with its catalogue class.
-- A log may name a machine GN001.cluster.site where the scheduler says gn001: then the scheduler's name holds.
with told as (
    select
        *,
        row_number() over (
            partition by record_id
            order by
                occurred_at asc nulls last,
                collected_at asc,
                text asc
        ) as telling
    from lake.hardware_events
),

events as (
    select * exclude (telling, export_id, line, collected_at)
    from told
    where telling = 1
),

kinds as (
    select distinct
        event_class,
        code,
        severity
    from events
),

-- The most specific row of the catalogue holds.
short_names as (
    select
        cluster,
        lower(split_part(node, '.', 1)) as short_name,
        min(node) as node
    from staging.scheduler__nodes
    group by cluster, lower(split_part(node, '.', 1))
    having count(*) = 1
),

classed as (
    select
        kinds.event_class,
        kinds.code,
        kinds.severity,
        arg_max(
            struct_pack(evidence_class := c.evidence_class, is_fatal := c.is_fatal, is_cleanup := c.is_cleanup),
            (c.code <> '*')::int * 2 + (c.severity <> '*')::int
        ) as class
    from kinds
    inner join reference.event_classes as c
        on
            kinds.event_class = c.event_class
            and (c.code = '*' or kinds.code::varchar = c.code)
            and (c.severity = '*' or kinds.severity = c.severity)
    group by kinds.event_class, kinds.code, kinds.severity
)

select
    events.* exclude (flags, device_kind, node),
    if(as_logged.node is null and short.node is not null, short.node, events.node) as node,
    coalesce(events.device_kind, 'node') as device_kind,
    coalesce(classed.class.evidence_class, events.event_class) as evidence_class,
    coalesce(classed.class.is_fatal, false) as is_fatal,
    coalesce(classed.class.is_cleanup, false) as is_cleanup,
    list_sort(list_distinct(coalesce(events.flags, []))) as flags
from events
left join classed
    on
        events.event_class = classed.event_class
        and events.code is not distinct from classed.code
        and events.severity is not distinct from classed.severity
left join staging.scheduler__nodes as as_logged
    on events.cluster = as_logged.cluster and events.node = as_logged.node
left join short_names as short
    on events.cluster = short.cluster and lower(split_part(events.node, '.', 1)) = short.short_name
