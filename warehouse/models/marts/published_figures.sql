-- One row per figure of the Llama 3 paper on interruptions: as printed, as its own counts give it, as found here.
-- Nothing else reads what the paper counted. Limits are 95 % (Poisson for counts and rates, Wilson for shares) of what
-- was recomputed. in_warehouse is null where no tracked run compares with the paper's, or none of its marts can tell.
with compared as (
    select
        figures.* replace (
            replace(
                replace(figures.meaning, 'this cause', coalesce(causes.label, '')),
                'this category',
                coalesce(figures.category, '')
            ) as meaning
        ),
        coalesce(
            figures.printed, if(figures.figure = 'table5_percent_total', percentages.printed_sum, null)
        ) as as_printed,
        coalesce(percentages.amount, rates.value) as as_recomputed,
        coalesce(percentages.lower, rates.lower) as lower,
        coalesce(percentages.upper, rates.upper) as upper,
        coalesce(percentages.trace, rates.trace) as trace,
        percentages.printed_sum,
        percentages.misprinted,
        in_warehouse.amount as in_warehouse,
        in_warehouse.run_id
    from reference.published_figures as figures
    left join intermediate.published__shares as percentages
        on figures.figure = percentages.figure
    left join reference.causes as causes
        on figures.cause = causes.code
    left join intermediate.published__rates as rates
        on figures.figure = rates.figure
    left join intermediate.published__in_warehouse as in_warehouse
        on figures.figure = in_warehouse.figure
),

judged as (
    select
        *,
        case relation
            when 'equal' then round(as_recomputed, decimals) = as_printed
            when 'at_least' then as_recomputed >= as_printed
            when 'above' then as_recomputed > as_printed
        end as agrees,
        case
            when relation = 'equal'
                then round(in_warehouse, decimals) = round(coalesce(as_recomputed, printed), decimals)
            when relation = 'at_least' then in_warehouse >= printed
            when relation = 'above' then in_warehouse > printed
        end as is_reproduced
    from compared
)

select
    position as figure_order,
    figure,
    section,
    meaning,
    unit,
    cause,
    relation,
    as_printed,
    round(as_recomputed, 6) as as_recomputed,
    round(lower, 6) as lower,
    round(upper, 6) as upper,
    round(in_warehouse, 6) as in_warehouse,
    run_id,
    case
        when as_printed is null then 'not printed'
        when cause is not null and unit = 'interruptions' then 'taken as given'
        when as_recomputed is null then 'nothing to recompute it from'
        when agrees and definition is not null then concat('agrees with ', definition)
        when agrees then 'agrees'
        when definition is not null then concat('does not follow from ', definition)
        when cause is not null and unit = 'percent' then 'misprint'
        when printed is null then 'does not add up'
        when misprinted is not null and printed_sum = printed then 'repeats the misprint'
        else 'does not follow from the counts'
    end as verdict,
    coalesce(agrees, true) as is_sound,
    is_reproduced,
    trace,
    source
from judged
