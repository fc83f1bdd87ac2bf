-- One row per interruption an operator has labelled; the latest label holds.
with ranked as (
    select
        *,
        row_number() over (
            partition by interruption_id
            order by
                made_at desc,
                record_id asc
        ) as label_rank
    from lake.annotations
)

select
    interruption_id,
    cause,
    node,
    why,
    author,
    made_at,
    record_id
from ranked
where label_rank = 1
