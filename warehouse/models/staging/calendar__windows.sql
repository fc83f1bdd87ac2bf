-- One row per reservation or configured calendar entry; the latest collection of a reservation holds.
-- Slice: cluster, name
-- Dirty: select cluster, name from delta.lake__windows
-- Dirty: union all select cluster, name from staging.calendar__windows
-- Dirty: semi join delta.staging__scheduler__host_lists using (cluster, node_list)
with reservations as (
    select
        *,
        row_number() over (
            partition by cluster, name, started_at
            order by
                collected_at desc,
                record_id asc
        ) as record_rank
    from lake.windows
),

reserved as (
    select
        w.cluster,
        w.kind,
        w.name,
        w.started_at,
        w.ended_at,
        coalesce(w.is_maintenance, false) as is_maintenance,
        w.node_list,
        w.node_list is null as is_whole_cluster,
        coalesce(host_lists.nodes, []) as nodes,
        concat_ws(' ', w.name, w.detail) as text,
        w.record_id
    from reservations as w
    left join staging.scheduler__host_lists as host_lists
        on w.cluster = host_lists.cluster and w.node_list = host_lists.node_list
    where w.record_rank = 1
),

planned as (
    select
        cluster,
        'calendar' as kind,
        name,
        started_at,
        ended_at,
        true as is_maintenance,
        null as node_list,
        len(nodes) = 0 as is_whole_cluster,
        nodes,
        name as text,
        left(sha256(concat_ws(chr(31), cluster, 'calendar', name, epoch_us(started_at))), 32) as record_id
    from settings.calendars
)

select * from reserved
union all
select * from planned
