-- One row per interruption and kind of error that its training log tells after the last step, or near the end.
-- The class comes from the words of the line; many ranks' lines of one kind are one piece. A line that blames the GPU
-- of its own rank keeps the node; what ranks say of each other does not.
-- Slice: interruption_id
-- Whole: intermediate.training__events
-- Dirty: select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from intermediate.attribution__stops
-- Dirty: where record_id in (select record_id from delta.intermediate__training__events)
with errors as (
    select
        stops.interruption_id,
        events.cluster,
        events.node,
        events.event,
        events.error_class,
        events.occurred_at,
        events.log_record_id as record_id,
        concat_ws(' ', events.error_class, events.text) as words,
        events.text
    from intermediate.training__events as events
    inner join intermediate.attribution__stops as stops
        on events.record_id = stops.record_id
    cross join settings.attribution as attribution
    where
        events.event in ('nccl_timeout', 'nccl_error', 'error', 'loss_not_finite', 'loss_spike')
        and events.occurred_at >= stops.opens_at
        and events.occurred_at <= stops.ended_at + to_seconds(attribution.after_seconds)
),

kinds as (
    select distinct
        event,
        words
    from errors
),

matched as (
    select
        kinds.event,
        kinds.words,
        patterns.evidence_class,
        row_number() over (partition by kinds.event, kinds.words order by patterns.priority) as match_rank
    from kinds
    inner join reference.log_patterns as patterns
        on kinds.event = patterns.event and regexp_matches(kinds.words, patterns.pattern)
),

classed as (
    select
        errors.*,
        matched.evidence_class,
        if(
            matched.evidence_class in ('log_gpu_memory_error', 'log_port_error')
            -- a rank's own loss, not the mean of all
            or (matched.evidence_class = 'log_loss_not_finite' and regexp_matches(errors.text, '(?i)\blocal\b')),
            errors.node,
            null
        ) as blamed_node
    from errors
    inner join matched
        on errors.event = matched.event and errors.words = matched.words and matched.match_rank = 1
)

select
    interruption_id,
    'training log' as kind,
    evidence_class,
    cluster,
    blamed_node as node,
    'log' as device_kind,
    null::varchar as device,
    null::bigint as code,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at,
    count(*) as events,
    arg_min(record_id, (occurred_at, record_id)) as record_id,
    concat_ws(
        ' ',
        arg_min(text, (occurred_at, record_id)),
        if(count(distinct node) > 1, concat('(and on ', count(distinct node) - 1, ' more nodes)'), null)
    ) as text
from classed
group by interruption_id, evidence_class, cluster, blamed_node
