-- One row per thing a training log tells, each record once (the earliest telling holds); steps come without their text.
-- A log may name a machine GN001.cluster.site where the scheduler says gn001: then the scheduler's name holds. Where a
-- line names only its rank, the rank map names the node.
-- Slice: record_id
with keyed as (
    select
        *,
        hash(record_id) as record_hash
    from lake.log_events
),

-- Grouping by a number is cheap; only what may stand there twice is looked at closely.
repeated as materialized (
    select record_hash
    from keyed
    group by record_hash
    having count(*) > 1
),

retold as (
    select
        keyed.*,
        row_number() over (
            partition by keyed.record_id
            order by
                keyed.occurred_at asc nulls last,
                keyed.collected_at asc,
                keyed.text asc,
                keyed.flags asc,
                keyed.job_id asc,
                keyed.node asc
        ) as telling
    from keyed
    semi join repeated
        on keyed.record_hash = repeated.record_hash
),

told as (
    select * exclude (record_hash)
    from keyed
    anti join repeated
        on keyed.record_hash = repeated.record_hash
    union all by name
    select * exclude (record_hash, telling)
    from retold
    where telling = 1
),

-- A job's own rank map comes before one for every job of the cluster.
own_ranks as (
    select *
    from staging.fleet__ranks
    where job_id is not null
),

common_ranks as (
    select *
    from staging.fleet__ranks
    where job_id is null
)


select
    told.cluster,
    told.record_id,
    told.job_id,
    told.rank,
    told.occurred_at,
    told.event,
    told.step,
    told.step_seconds,
    told.loss,
    told.samples,
    told.batch_size,
    told.error_class,
    told.sequence,
    told.seconds,
    if(
        told.node is null,
        coalesce(own_ranks.node, common_ranks.node),
        coalesce(as_logged.node, short.node, told.node)
    ) as node,
    if(told.event = 'step', null, told.text) as text,
    list_sort(list_distinct(coalesce(told.flags, []))) as flags
from told
left join staging.scheduler__nodes as as_logged
    on told.cluster = as_logged.cluster and told.node = as_logged.node
left join staging.scheduler__short_names as short
    on told.cluster = short.cluster and lower(split_part(told.node, '.', 1)) = short.short_name
left join own_ranks
    on told.cluster = own_ranks.cluster and told.job_id = own_ranks.job_id and told.rank = own_ranks.rank
left join common_ranks
    on told.cluster = common_ranks.cluster and told.rank = common_ranks.rank
