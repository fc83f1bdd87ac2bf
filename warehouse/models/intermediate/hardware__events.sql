-- One row per hardware event with a time and a node, its class refined by what the machine said just before or after.
-- A lost GPU told without an Xid is the same fault as Xid 79, and carries its code. See intermediate.hardware__refined.
-- Slice: occurred_at
select
    events.* exclude (evidence_class, is_fatal, code),
    if(events.event_class = 'gpu_lost', 79, events.code) as code,
    coalesce(refined.evidence_class, events.evidence_class) as evidence_class,
    (events.is_fatal and not coalesce(refined.is_passing, false)) as is_fatal
from staging.hardware__events as events
left join intermediate.hardware__refined as refined
    on events.record_id = refined.record_id
where events.occurred_at is not null and events.node is not null
