-- One row per maintenance reservation or calendar entry, known before, that covers the end.
select
    interruption_id,
    evidence_id,
    'planned_window' as rule,
    'window_maintenance' as weight_class
from intermediate.attribution__candidates
where evidence_class = 'window_maintenance'
