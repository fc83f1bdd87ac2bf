-- Every record that attempts, node states, faults and inventory cite stands in ops.record_locations.
with cited as (
    select
        'attempts' as mart,
        record_id
    from marts.attempts
    union all
    select
        'node_states' as mart,
        record_id
    from marts.node_states
    union all
    select
        'faults' as mart,
        record_id
    from marts.faults
    union all
    select
        'inventory' as mart,
        record_id
    from marts.inventory
)

select
    cited.mart,
    cited.record_id
from cited
anti join ops.record_locations as locations
    on cited.record_id = locations.record_id
