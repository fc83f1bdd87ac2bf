-- One row per row of the Llama 3 paper's Table 5: its count and percentage as printed, and the share that the count is.
with counted as (
    select
        figures.cause,
        figures.printed::bigint as interruptions,
        percentages.printed as printed_percent,
        percentages.decimals
    from reference.published_figures as figures
    inner join reference.published_figures as percentages
        on
            figures.cause = percentages.cause
            and figures.unit = 'interruptions'
            and percentages.unit = 'percent'
)

select
    causes.table5_row,
    counted.cause,
    causes.label,
    causes.category,
    causes.hardware,
    counted.interruptions,
    counted.printed_percent,
    counted.decimals,
    sum(counted.interruptions) over ()::bigint as total,
    100 * counted.interruptions / sum(counted.interruptions) over () as true_percent
from counted
inner join reference.causes as causes
    on counted.cause = causes.code
