-- One row per interruption an operator has labelled.
select
    index.interruption_id,
    'operator label' as kind,
    'operator_label' as evidence_class,
    index.cluster,
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
inner join intermediate.interruptions__index as index
    on annotations.interruption_id = index.interruption_id
