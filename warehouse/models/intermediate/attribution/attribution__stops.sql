-- One row per interruption: when the run stopped making progress, as far as its training log tells, and from when on
-- evidence counts.
-- With a step log that is from a while before the last progress; without one, from longer before the end.
select
    index.interruption_id,
    index.record_id,
    index.cluster,
    index.started_at,
    index.ended_at,
    index.state,
    index.nodes,
    index.is_placed,
    index.time_limit_seconds,
    index.elapsed_seconds,
    index.is_resumed_in_window,
    training.last_progress_at,
    training.last_progress_at is not null as is_progress_observed,
    -- steps, or a last save, went on until the end: many logs print every Nth step only
    coalesce(
        greatest(training.last_step_at, training.last_durable_at)
        + to_milliseconds(3000 * least(coalesce(training.median_logging_seconds, 0), 1e9))
        >= index.ended_at
        and training.median_logging_seconds is not null,
        false
    ) as is_advancing,
    least(coalesce(training.last_progress_at, index.ended_at), index.ended_at) as stopped_at,
    greatest(
        index.started_at,
        if(
            training.last_progress_at is null,
            index.ended_at - to_seconds(attribution.before_seconds),
            least(training.last_progress_at, index.ended_at) - to_seconds(attribution.progress_before_seconds)
        )
    ) as opens_at
from intermediate.interruptions__index as index
left join intermediate.training__attempts as training
    on index.record_id = training.record_id
cross join settings.attribution as attribution
