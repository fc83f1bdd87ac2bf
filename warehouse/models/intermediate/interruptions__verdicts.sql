-- One row per interruption with its verdict and its class.
-- Parts: intermediate.attribution__verdicts
-- Slice: interruption_id
with hints as (
    select distinct interruption_id
    from intermediate.attribution__weights
    where suspect is not null and log_weight > 0
),

judged as (
    select
        verdicts.* exclude (suspect, suspect_gpu),
        stops.record_id,
        stops.cluster,
        stops.is_placed,
        causes.label,
        causes.category,
        causes.hardware as hardware_at_best,
        causes.class as cause_class,
        verdicts.suspect as culprit_node,
        verdicts.suspect_gpu as culprit_gpu,
        telemetry.cluster is not null as has_telemetry,
        hints.interruption_id is not null as has_hints,
        stops.is_progress_observed,
        if(
            stops.is_progress_observed and not stops.is_advancing,
            concat(
                'steps had stopped ',
                epoch(stops.ended_at)::bigint - epoch(stops.stopped_at)::bigint,
                ' s before the end; '
            ),
            ''
        ) as stalled_words
    from intermediate.attribution__verdicts as verdicts
    inner join intermediate.attribution__stops as stops
        on verdicts.interruption_id = stops.interruption_id
    left join reference.causes as causes
        on verdicts.cause = causes.code
    left join staging.hardware__clusters as telemetry
        on stops.cluster = telemetry.cluster
    left join hints
        on verdicts.interruption_id = hints.interruption_id
)

select
    * exclude (
        cause_class, hardware_at_best, is_placed, is_progress_observed, has_telemetry, has_hints, stalled_words
    ),
    cause_class as class,
    cause_class = 'planned' as is_planned,
    case
        when hardware_at_best = 'confirmed' and is_confirmed then 'confirmed'
        when hardware_at_best in ('confirmed', 'suspected') then 'suspected'
        else 'no'
    end as hardware,
    case
        when cause <> 'unknown' then null
        when not is_placed then 'the scheduler names no nodes'
        when not has_telemetry then 'no hardware events of this cluster were loaded'
        when has_hints
            then concat(
                stalled_words,
                'the machine evidence is too weak to name a cause, and ',
                if(is_progress_observed, 'the training log names no error', 'there is no training log')
            )
        else concat(
            stalled_words,
            'no machine evidence in the window, and ',
            if(is_progress_observed, 'the training log names no error', 'no training log')
        )
    end as unknown_reason
from judged
