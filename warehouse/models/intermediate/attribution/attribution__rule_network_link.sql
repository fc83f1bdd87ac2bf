-- One row per link that went down; on three nodes or more at once the switch or its cable is likelier than an adapter.
with links as (
    select
        *,
        count(distinct if(evidence_class = 'link_down', node, null)) over (partition by interruption_id) as nodes_hit
    from intermediate.attribution__candidates
    where evidence_class in ('link_down', 'link_bounce', 'cable_error', 'reason_network_link')
)

select
    interruption_id,
    evidence_id,
    'network_link' as rule,
    if(evidence_class = 'link_down' and nodes_hit >= 3, 'link_down_many', evidence_class) as weight_class
from links
