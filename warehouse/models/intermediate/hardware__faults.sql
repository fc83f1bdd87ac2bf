-- One row per fault, with when it was cleared: by what put the node or GPU right or by what outlived it, whichever was
-- first. Its record and what that says are those of its first event.
-- Slice: first_at
-- Dirty: select first_at from delta.intermediate__hardware__coalesced
-- Dirty: union all select first_at from delta.intermediate__hardware__outlived
-- Dirty: union all select occurred_at from delta.intermediate__hardware__events where is_fault
with outlived as (
    select
        coalesced.*,
        events.device_kind,
        events.gpu_index,
        events.event_class,
        events.text,
        outlived.proven_at,
        outlived.outlived_at
    from intermediate.hardware__coalesced as coalesced
    -- the time tells a scan where to look
    inner join intermediate.hardware__events as events
        on coalesced.first_at = events.occurred_at and coalesced.record_id = events.record_id
    left join intermediate.hardware__outlived as outlived
        on coalesced.record_id = outlived.record_id
)

select
    left(
        sha256(
            concat_ws(
                chr(31),
                cluster,
                node,
                evidence_class,
                coalesce(code::varchar, ''),
                coalesce(device, ''),
                epoch_us(first_at)
            )
        ),
        16
    ) as fault_id,
    * exclude (put_right_at, put_right_by, tested_at, proven_at, outlived_at),
    least(put_right_at, tested_at, proven_at, outlived_at) as cleared_at,
    case least(put_right_at, tested_at, proven_at, outlived_at)
        when put_right_at then put_right_by
        when tested_at then 'passed diagnostic'
        when outlived_at then 'steps went on'
        when proven_at then 'a later job ran well'
    end as cleared_by
from outlived
