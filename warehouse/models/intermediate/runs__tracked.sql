-- One row per job attempt that belongs to a tracked run, with its run key and the [[runs]] entry that holds.
-- Attempts without a start, or of unknown length, enter no run. A job of which no part of the key is known stands for
-- itself.
-- Slice: record_id
with attempts as (
    select
        *,
        map {
            'cluster': cluster,
            'job_id': job_id,
            'job_id_raw': job_id_raw,
            'job_name': job_name,
            'user': "user",
            'account': account,
            'partition': "partition",
            'qos': qos,
            'reservation': reservation,
            'comment': comment,
            'array_job_id': array_job_id,
            'het_job_id': het_job_id,
            'gpu_type': gpu_type
        } as named
    from staging.scheduler__attempts
    where started_at is not null and observed_until is not null
),

matched as (
    select
        attempts.*,
        runs.* exclude (match_columns, match_globs, min_gpus),
        row_number() over (
            partition by attempts.cluster, attempts.job_id_raw, attempts.submitted_at, attempts.started_at
            order by runs.run_rule
        ) as match_rank
    from attempts
    inner join settings.runs as runs
        on
            len(
                list_filter(
                    range(1, len(runs.match_columns) + 1),
                    lambda i: not coalesce(attempts.named[runs.match_columns[i]] glob runs.match_globs[i], false)
                )
            ) = 0
            and (runs.min_gpus is null or attempts.gpus >= runs.min_gpus)
),

keyed as (
    select
        * exclude (named, match_rank, key_columns, key_patterns),
        list_transform(
            range(1, len(key_columns) + 1),
            lambda i: coalesce(
                if(
                    coalesce(key_patterns[i], '') = '',
                    named[key_columns[i]],
                    regexp_extract(named[key_columns[i]], key_patterns[i], 1)
                ),
                ''
            )
        ) as told_parts
    from matched
    where match_rank = 1
),

told as (
    select
        * exclude (told_parts),
        if(
            len(told_parts) > 0 and array_to_string(told_parts, '') = '', [concat('job ', job_id_raw)], told_parts
        ) as key_parts
    from keyed
)

-- of the attempt what runs, interruptions and the ledger ask for
select
    cluster,
    job_id,
    job_id_raw,
    attempt,
    submitted_at,
    eligible_at,
    started_at,
    ended_at,
    observed_until,
    elapsed_seconds,
    suspended_seconds,
    time_limit_seconds,
    state,
    state_raw,
    exit_code,
    signal,
    reason,
    reservation,
    failed_node,
    node_list,
    is_placed,
    nodes,
    gpus,
    flags,
    record_id,
    max_gap_seconds,
    resume_window_seconds,
    checkpoint_interval_seconds,
    restart_overhead_seconds,
    coalesce(name, array_to_string(key_parts, '/')) as run,
    array_to_string(list_prepend(run_rule::varchar, key_parts), chr(31)) as run_key
from told
