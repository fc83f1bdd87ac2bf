-- One row per interruption and piece of evidence: everything a rule may speak of.
-- Parts: intermediate.attribution__scheduler_states, intermediate.attribution__labels
-- Slice: interruption_id
with evidence as (
    select * from intermediate.attribution__events
    union all by name
    select * from intermediate.attribution__standing_faults
    union all by name
    select * from intermediate.attribution__node_states
    union all by name
    select * from intermediate.attribution__scheduler_states
    union all by name
    select * from intermediate.attribution__windows
    union all by name
    select * from intermediate.attribution__log_errors
    union all by name
    select * from intermediate.attribution__silent_ranks
    union all by name
    select * from intermediate.attribution__left_out
    union all by name
    select * from intermediate.attribution__labels
)

select
    left(
        sha256(
            concat_ws(
                chr(31),
                evidence.interruption_id,
                evidence.kind,
                evidence.evidence_class,
                coalesce(evidence.node, ''),
                coalesce(evidence.device, ''),
                coalesce(evidence.code::varchar, ''),
                evidence.record_id
            )
        ),
        16
    ) as evidence_id,
    evidence.interruption_id,
    evidence.kind,
    evidence.evidence_class,
    evidence.cluster,
    evidence.node,
    evidence.device_kind,
    evidence.device,
    evidence.code,
    evidence.unit,
    coalesce(evidence.is_fatal, false) as is_fatal,
    coalesce(evidence.is_cleanup, false) as is_cleanup,
    coalesce(evidence.is_fault, true) as is_fault,
    coalesce(evidence.is_person, false) as is_person,
    coalesce(evidence.is_planned_rollout, false) as is_planned_rollout,
    evidence.cause as labelled_cause,
    evidence.first_at,
    evidence.last_at,
    evidence.events,
    epoch(stops.ended_at)::bigint - epoch(evidence.first_at)::bigint as seconds_before_end,
    -- from the stop (the last progress, else the end) to the first event after it, or the last before it; 0 where the
    -- events, or the interval, reach over it
    greatest(
        epoch(evidence.first_at)::bigint - epoch(stops.stopped_at)::bigint,
        epoch(stops.stopped_at)::bigint - epoch(coalesce(evidence.last_at, evidence.first_at))::bigint,
        0
    ) as seconds_from_stop,
    evidence.chance,
    evidence.record_id,
    evidence.text
from evidence
inner join intermediate.attribution__stops as stops
    on evidence.interruption_id = stops.interruption_id
