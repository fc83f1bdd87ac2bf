-- One row per published share of the unexpected interruptions, recomputed from Table 5's counts, with its trace.
-- `printed_sum` adds up the printed percentages of the same rows.
with rows_of as (
    select
        figures.figure,
        figures.unit,
        figures.printed,
        table5.*
    from reference.published_figures as figures
    inner join intermediate.published__table5 as table5
        on case figures.figure
            when 'hardware_share_percent' then table5.category in ('GPU', 'Host', 'Unplanned Maintenance')
            when 'hardware_share_percent_matching' then table5.category not in ('Dependency', 'Network')
            when 'hardware_share_percent_by_cause' then table5.hardware <> 'no'
            when 'table5_percent_total' then true
            else figures.cause = table5.cause or figures.category = table5.category
        end
),

summed as (
    select
        figure,
        any_value(unit) as unit,
        any_value(printed) as printed,
        sum(interruptions)::bigint as interruptions,
        any_value(total) as total,
        round(sum(printed_percent), 1) as printed_sum,
        string_agg(printf('%.1f', printed_percent), ' + ' order by table5_row asc) as printed_terms,
        count(*) as table5_rows,
        string_agg(distinct category, ', ' order by category asc) as categories,
        string_agg(
            printf('%s (%.1f printed, %.1f by its count)', label, printed_percent, true_percent),
            ', ' order by table5_row asc
        ) filter (where round(true_percent, decimals) <> printed_percent) as misprinted
    from rows_of
    group by figure
),

fitting as (
    select
        figures.figure,
        string_agg(
            printf('%s (%d, %.1f %%)', unions.categories, unions.interruptions, unions.true_percent), '; '
            order by unions.members asc
        ) as unions
    from reference.published_figures as figures
    inner join intermediate.published__category_unions as unions
        on figures.printed = round(unions.true_percent, figures.decimals)
    where figures.figure like 'hardware_share_percent%'
    group by figures.figure
)

select
    summed.figure,
    summed.printed_sum,
    summed.misprinted,
    if(summed.unit = 'percent', 100 * summed.interruptions / summed.total, summed.interruptions) as amount,
    if(
        summed.unit = 'percent',
        100 * wilson_lower(summed.interruptions, summed.total),
        poisson_lower(summed.interruptions)
    ) as lower,
    if(
        summed.unit = 'percent',
        100 * wilson_upper(summed.interruptions, summed.total),
        poisson_upper(summed.interruptions)
    ) as upper,
    concat(
        if(summed.unit = 'percent', printf('%d of %d', summed.interruptions, summed.total), null),
        if(summed.unit <> 'percent', printf('%d as printed', summed.interruptions), null),
        if(summed.table5_rows > 1, printf(' (%s)', summed.categories), null),
        if(
            summed.table5_rows > 1 and summed.unit = 'percent',
            printf('; the printed percentages of these sum to %.1f', summed.printed_sum),
            null
        ),
        if(
            summed.table5_rows > 1
            and (summed.printed_sum = summed.printed or summed.figure = 'table5_percent_total'),
            printf(' = %s', summed.printed_terms) || '; misprinted: ' || summed.misprinted,
            null
        ),
        if(
            summed.figure = 'hardware_share_percent',
            printf('; of all unions of categories these round to %.0f: ', summed.printed) || fitting.unions,
            null
        )
    ) as trace
from summed
left join fitting
    on summed.figure = fitting.figure
