-- Attempts of one run follow each other: overlapping attempts are different runs.
with ordered as (
    select
        run_id,
        job_id_raw,
        started_at,
        lag(ended_at) over (partition by run_id order by started_at, ended_at) as previous_ended_at
    from marts.attempts
    where run_id is not null
)

select * from ordered
where previous_ended_at > started_at
