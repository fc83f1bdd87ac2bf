-- Macros over marts; they stand in the published file and work in any DuckDB client. (No `if()`: DuckDB 1.4 does
-- not find a stored one.)

-- Causes that stopped a cluster's tracked runs in a period, in Table 5's order: from `since` on, before `until_`.
create macro root_causes_between(cluster_name, since, until_) as table
    select
        i.cause,
        any_value(i.label) as label,
        any_value(i.category) as category,
        i.class,
        count(*) as interruptions,
        count(distinct i.incident_id) as incidents,
        case
            when i.class = 'unexpected'
                then round(count(*) / sum(case when i.class = 'unexpected' then count(*) else 0 end) over (), 6)
        end as share_of_unexpected,
        round(sum(i.lost_gpu_seconds) / 3600, 6) as lost_gpu_hours
    from marts.interruptions as i
    left join reference.causes as c on i.cause = c.code
    where i.cluster = cluster_name and i.interrupted_at >= since and i.interrupted_at < until_
    group by i.cause, i.class
    order by any_value(c.table5_row) asc nulls last, i.class = 'unexpected' desc, i.cause asc;
