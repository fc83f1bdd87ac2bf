-- One row per set of Table 5's categories: what its counts sum to, and the share of all.
with categories as (
    select
        category,
        sum(interruptions)::bigint as interruptions,
        any_value(total) as total,
        row_number() over (order by category asc) - 1 as place
    from intermediate.published__table5
    group by category
),

sets as (
    select unnest(generate_series(1, (1 << max(place + 1)) - 1)) as members
    from categories
)

select
    sets.members,
    string_agg(categories.category, ' + ' order by categories.category asc) as categories,
    sum(categories.interruptions)::bigint as interruptions,
    100 * sum(categories.interruptions) / any_value(categories.total) as true_percent
from sets
inner join categories
    on (sets.members >> categories.place) & 1 = 1
group by sets.members
