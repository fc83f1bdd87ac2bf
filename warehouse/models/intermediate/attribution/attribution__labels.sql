-- One row per interruption an operator has labelled.
select
    stops.interruption_id,
    'operator label' as kind,
    'operator_label' as evidence_class,
    stops.cluster,
    annotations.node,
    'node' as device_kind,
    null::varchar as device,
    null::bigint as code,
    annotations.made_at as first_at,
    annotations.made_at as last_at,
    1 as events,
    annotations.record_id,
    annotations.cause,
    concat_ws(' ', annotations.cause, concat('by ', annotations.author, ':'), annotations.why) as text
from staging.operators__annotations as annotations
inner join intermediate.attribution__stops as stops
    on annotations.interruption_id = stops.interruption_id
