-- One row per thing other than a step that a training log tells of a tracked attempt: starts, checkpoints, errors.
-- `record_id` is the attempt's, or that of its piece where training restarted inside it; `log_record_id` the line's.
-- Slice: split_part(record_id, '/', 1)
-- Whole: staging.training__log_events
-- Dirty: select split_part(record_id, '/', 1) from delta.intermediate__training__matches
-- Dirty: union all select split_part(record_id, '/', 1) from delta.intermediate__training__pieces
-- Dirty: union all select split_part(matches.record_id, '/', 1) from intermediate.training__matches as matches
-- Dirty: semi join (select record_id from delta.staging__training__log_events where _times < 0) as told
-- Dirty: on matches.log_record_id = told.record_id
with told as (
    select
        events.* exclude (record_id),
        matches.record_id,
        events.record_id as log_record_id
    from intermediate.training__matches as matches
    -- a match has the time of its line: times tell a scan where to look
    inner join staging.training__log_events as events
        on matches.log_record_id = events.record_id and matches.occurred_at = events.occurred_at
    where matches.event <> 'step' and events.event <> 'step' and matches.record_id is not null
),

whole as (
    select told.*
    from told
    anti join intermediate.training__pieces as pieces
        on told.record_id = pieces.attempt_record_id
),

parted as (
    select
        told.* exclude (record_id),
        pieces.record_id
    from told
    asof inner join intermediate.training__pieces as pieces
        on told.record_id = pieces.attempt_record_id and told.occurred_at >= pieces.from_at
)

select * from whole
union all by name
select * from parted
