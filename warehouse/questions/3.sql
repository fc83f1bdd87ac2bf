-- Which nodes should I take out?
with fleet as (
    select
        cluster,
        count(*) as nodes,
        sum(blamed) / sum(exposure_days) as blamed_per_day
    from marts.nodes
    where exposure_days > 0
    group by cluster
)

select
    n.node,
    n.blamed,
    n.last_cause,
    n.fatal_faults,
    n.exposure_days::decimal(9, 1) as exposure_days,
    n.days_out::decimal(9, 1) as days_out,
    n.blamed_per_1000_days_lower::decimal(9, 1) as per_1000_days_lower,
    (1000 * f.blamed_per_day)::decimal(9, 1) as fleet_per_1000_days,
    -- Nodes that would be blamed at least as often by chance, were all alike: the upper tail of a Poisson distribution.
    (f.nodes * (1 - list_sum(list_transform(
        range(n.blamed),
        lambda k: exp(-f.blamed_per_day * n.exposure_days)
        * (f.blamed_per_day * n.exposure_days) ** k / factorial(k::int)
    ))))::decimal(9, 2) as by_chance
from marts.nodes as n
inner join fleet as f on n.cluster = f.cluster
where n.exposure_days > 0 and n.blamed_per_1000_days_lower > 1000 * f.blamed_per_day
order by by_chance, n.cluster, n.node;
