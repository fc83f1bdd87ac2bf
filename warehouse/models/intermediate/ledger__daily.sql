-- One row per tracked run, UTC day and state: the run's intervals split at midnight UTC.
with split as (
    select
        *,
        unnest(
            range(
                date_trunc('day', started_at at time zone 'UTC'),
                (ended_at at time zone 'UTC'),
                interval 1 day
            )
        ) as day_at
    from marts.ledger
)

select
    cluster,
    run_id,
    day_at::date as day,
    state,
    sum(
        epoch(least(ended_at at time zone 'UTC', day_at + interval 1 day))::bigint
        - epoch(greatest(started_at at time zone 'UTC', day_at))::bigint
    ) as seconds,
    sum(
        (
            epoch(least(ended_at at time zone 'UTC', day_at + interval 1 day))::bigint
            - epoch(greatest(started_at at time zone 'UTC', day_at))::bigint
        )
        * gpus
    ) as gpu_seconds,
    coalesce(
        sum(
            (
                epoch(least(ended_at at time zone 'UTC', day_at + interval 1 day))::bigint
                - epoch(greatest(started_at at time zone 'UTC', day_at))::bigint
            )
            * gpus
        ) filter (where assumed_gpu_seconds is not null),
        0
    ) as assumed_gpu_seconds
from split
group by cluster, run_id, day_at, state
