-- One row per attempt of a tracked run, in the run's order, with what came before and after it.
-- `progress_seconds` is assumed here: what an attempt adds beyond its restart, until a training log measures it.
with placed as (
    select
        attempts.*,
        chains.run_attempt,
        chains.joined_by,
        left(
            sha256(
                concat_ws(
                    chr(31),
                    firsts.cluster,
                    firsts.run_key,
                    firsts.job_id_raw,
                    coalesce(epoch_us(firsts.submitted_at)::varchar, ''),
                    epoch_us(firsts.started_at)
                )
            ),
            16
        ) as run_id
    from intermediate.runs__tracked as attempts
    inner join intermediate.runs__chains as chains
        on attempts.record_id = chains.record_id
    inner join intermediate.runs__tracked as firsts
        on chains.first_record_id = firsts.record_id
)

select
    *,
    lead(started_at) over run_order as next_started_at,
    lead(coalesce(eligible_at, submitted_at)) over run_order as next_eligible_at,
    lead(gpus) over run_order as next_gpus,
    lead(job_id_raw) over run_order as next_job_id_raw
from placed
window run_order as (partition by run_id order by run_attempt)
