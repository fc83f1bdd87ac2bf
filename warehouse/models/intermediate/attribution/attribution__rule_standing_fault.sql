-- One row per fatal fault that began before the evidence window and was never cleared.
with standing as (
    select
        *,
        regexp_extract(evidence_class, '^(standing|uncleared)_', 1) as since,
        regexp_replace(evidence_class, '^(standing|uncleared)_', '') as fault_class
    from intermediate.attribution__candidates
    where kind = 'standing fault'
)

select
    interruption_id,
    evidence_id,
    'standing_fault' as rule,
    concat(
        since,
        case
            when fault_class in ('xid_119', 'xid_120') then '_gsp'
            when fault_class in ('xid_48', 'xid_64', 'xid_95', 'xid_140') then '_gpu_memory'
            when device_kind = 'gpu' then '_gpu_fault'
            else '_other'
        end
    ) as weight_class
from standing
