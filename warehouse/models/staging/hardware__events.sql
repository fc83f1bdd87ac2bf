-- One row per thing a machine reported, each record once (the earliest telling holds), with its catalogue class.
-- A log may name a machine GN001.cluster.site where the scheduler says gn001: then the scheduler's name holds.
-- Which GPU a PCI address, index or UUID means is what the inventory says for that instant.
-- Slice: record_id
with told as (
    select
        *,
        row_number() over (
            partition by record_id
            order by
                occurred_at asc nulls last,
                collected_at asc,
                text asc,
                flags asc,
                monotonic_us asc,
                severity asc,
                device asc,
                unit asc
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
classed as (
    select
        kinds.event_class,
        kinds.code,
        kinds.severity,
        arg_max(
            struct_pack(
                evidence_class := c.evidence_class,
                is_fatal := c.is_fatal,
                is_cleanup := c.is_cleanup,
                is_fault := c.is_fault
            ),
            (c.code <> '*')::int * 2 + (c.severity <> '*')::int
        ) as class
    from kinds
    inner join reference.event_classes as c
        on
            kinds.event_class = c.event_class
            and (c.code = '*' or kinds.code::varchar = c.code)
            and (c.severity = '*' or kinds.severity = c.severity)
    group by kinds.event_class, kinds.code, kinds.severity
),

placed as (
    select
        events.* exclude (flags, device_kind, node),
        if(as_logged.node is null and short.node is not null, short.node, events.node) as node,
        coalesce(events.device_kind, 'node') as device_kind,
        if(events.device_kind = 'gpu', events.device, null) as gpu_name,
        coalesce(events.occurred_at, timestamptz '9999-12-31 00:00:00+00') as asked_at,
        list_sort(list_distinct(coalesce(events.flags, []))) as flags
    from events
    left join staging.scheduler__nodes as as_logged
        on events.cluster = as_logged.cluster and events.node = as_logged.node
    left join staging.scheduler__short_names as short
        on events.cluster = short.cluster and lower(split_part(events.node, '.', 1)) = short.short_name
)

select
    placed.* exclude (flags, gpu_name, asked_at),
    coalesce(names.gpu_index, try_cast(regexp_extract(placed.gpu_name, '^[0-9]{1,3}$') as bigint)) as gpu_index,
    if(
        placed.occurred_at >= names.uuid_from_at and placed.occurred_at < names.uuid_until_at, names.uuid, null
    ) as gpu_uuid,
    coalesce(classed.class.evidence_class, placed.event_class) as evidence_class,
    coalesce(classed.class.is_fatal, false) as is_fatal,
    coalesce(classed.class.is_cleanup, false) as is_cleanup,
    coalesce(classed.class.is_fault, true) as is_fault,
    placed.flags
from placed
left join classed
    on
        placed.event_class = classed.event_class
        and placed.code is not distinct from classed.code
        and placed.severity is not distinct from classed.severity
left join staging.fleet__gpu_names as names
    on
        placed.cluster = names.cluster
        and placed.node = names.node
        and placed.gpu_name = names.name
        and placed.asked_at >= names.from_at
        and placed.asked_at < names.until_at
