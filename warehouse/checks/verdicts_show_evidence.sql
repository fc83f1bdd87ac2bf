-- Every interruption has evidence, and what it cites stands in the exports, or in the configuration's calendar.
select
    'no evidence' as problem,
    interruptions.interruption_id,
    null as record_id
from marts.interruptions as interruptions
anti join marts.interruption_evidence as evidence
    on interruptions.interruption_id = evidence.interruption_id
union all
select
    'cites a record that stands nowhere',
    evidence.interruption_id,
    evidence.record_id
from marts.interruption_evidence as evidence
anti join ops.record_locations as locations
    on evidence.record_id = locations.record_id
where evidence.kind <> 'window'
