-- The intervals of a run follow each other without gap or overlap, from its first start to the last instant it was
-- seen.
with intervals as (
    select
        run_id,
        started_at,
        ended_at,
        seconds,
        lead(started_at) over (partition by run_id order by started_at, ended_at) as next_started_at
    from marts.ledger
),

spans as (
    select
        run_id,
        sum(seconds) as ledger_seconds
    from intervals
    group by run_id
)

select
    'gap or overlap' as problem,
    run_id,
    ended_at,
    next_started_at
from intervals
where next_started_at <> ended_at
union all
select
    'sum is not the elapsed time',
    runs.run_id,
    runs.started_at,
    runs.observed_until
from marts.runs as runs
left join spans
    on runs.run_id = spans.run_id
where
    coalesce(spans.ledger_seconds, 0)
    <> epoch(runs.observed_until)::bigint - epoch(runs.started_at)::bigint
