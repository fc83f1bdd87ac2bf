-- One row per link that went down and stayed down, or flapped.
-- On three nodes or more at once the switch or its cable is likelier than an adapter. A link that is back within a
-- minute is no cause by itself; three times or more it flaps.
with links as (
    select
        *,
        count(distinct if(evidence_class = 'link_down', node, null)) over (partition by interruption_id) as nodes_hit
    from intermediate.attribution__candidates
    where
        evidence_class in ('link_down', 'cable_error', 'reason_network_link')
        or (evidence_class = 'link_bounce' and events >= 3)
)

select
    interruption_id,
    evidence_id,
    'network_link' as rule,
    case
        when evidence_class = 'link_down' and nodes_hit >= 3 then 'link_down_many'
        when evidence_class = 'link_bounce' then 'link_flapping'
        else evidence_class
    end as weight_class
from links
