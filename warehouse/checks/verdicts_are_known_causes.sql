-- Every verdict is a cause of the catalogue, with a confidence between 0 and 1 and a reason where it is unknown.
select
    interruptions.interruption_id,
    interruptions.cause,
    interruptions.confidence,
    interruptions.unknown_reason
from marts.interruptions as interruptions
left join reference.causes as causes
    on interruptions.cause = causes.code
where
    causes.code is null
    or interruptions.confidence is null
    or interruptions.confidence not between 0 and 1
    or (interruptions.cause = 'unknown') <> (interruptions.unknown_reason is not null)
    or interruptions.is_planned <> (interruptions.class = 'planned')
