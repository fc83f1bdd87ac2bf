-- One row per link that went down and stayed down, or flapped. On three nodes or more at once the switch or its cable
-- is likelier than an adapter. A link that is back within a minute is no cause by itself; three times or more it
-- flaps, and on three nodes at once something above them does. A bounce within a minute of the last step may have
-- been what stalled it. Several adapters of one node that lose their links have the node in common.
with links as (
    select
        *,
        count(distinct device) filter (
            where evidence_class = 'link_down'
        ) over (partition by interruption_id, node) as devices_down
    from intermediate.attribution__candidates
    where evidence_class in ('link_down', 'cable_error', 'reason_network_link', 'link_bounce')
)

select
    candidates.interruption_id,
    candidates.evidence_id,
    'network_link' as rule,
    case
        when candidates.evidence_class in ('link_down', 'link_bounce') and crowds.nodes_at_once >= 3
            then 'link_down_many'
        when candidates.evidence_class = 'link_bounce' and candidates.events >= 3 then 'link_flapping'
        when candidates.evidence_class = 'link_bounce' then 'link_bounce_at_stop'
        when candidates.evidence_class = 'link_down' and candidates.devices_down >= 2 then 'links_down_on_node'
        else candidates.evidence_class
    end as weight_class
from links as candidates
inner join intermediate.attribution__stops as stops
    on candidates.interruption_id = stops.interruption_id
left join intermediate.attribution__crowds as crowds
    on candidates.evidence_id = crowds.evidence_id
where
    candidates.evidence_class <> 'link_bounce'
    or candidates.events >= 3
    or crowds.nodes_at_once >= 3
    or (stops.is_progress_observed and candidates.seconds_from_stop <= 60)
