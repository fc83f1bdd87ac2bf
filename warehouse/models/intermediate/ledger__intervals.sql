-- One row per tracked run and interval of one state; intervals of a run follow each other without gap or overlap.
with held as (
    select
        cluster,
        run_id,
        run_attempt,
        gpus,
        interruption_id,
        unnest([
            struct_pack(
                state := 'starting', from_second := 0, seconds := starting, is_assumed := true
            ),
            struct_pack(
                state := 'productive', from_second := starting, seconds := productive, is_assumed := true
            ),
            struct_pack(
                state := 'suspended', from_second := starting + productive, seconds := suspended, is_assumed := false
            ),
            struct_pack(
                state := tail_state,
                from_second := starting + productive + suspended,
                seconds := tail,
                is_assumed := true
            )
        ]) as phase,
        date_trunc('second', started_at) as started_at
    from intermediate.ledger__phases
    where not is_measured
),

within as (
    select
        cluster,
        run_id,
        run_attempt,
        if(phase.state = 'lost_work', interruption_id, null) as interruption_id,
        phase.state,
        started_at + to_seconds(phase.from_second) as started_at,
        phase.seconds,
        gpus,
        phase.is_assumed
    from held
),

measured as (
    select
        attempts.cluster,
        attempts.run_id,
        attempts.run_attempt,
        interruptions.interruption_id,
        measured.state,
        date_trunc('second', attempts.started_at) + to_seconds(measured.from_second) as started_at,
        measured.seconds,
        attempts.gpus,
        measured.is_assumed
    from intermediate.ledger__measured as measured
    inner join intermediate.runs__attempts as attempts
        on measured.record_id = attempts.record_id
    left join intermediate.interruptions__index as interruptions
        on measured.charged_record_id = interruptions.record_id
),

between_attempts as (
    select
        phases.cluster,
        phases.run_id,
        phases.run_attempt,
        phases.interruption_id,
        case
            when phases.ended_at is null then 'unobserved'
            when verdicts.is_planned then 'down_planned'
            else 'down_unexpected'
        end as state,
        date_trunc('second', phases.observed_until) as started_at,
        epoch(phases.next_started_at)::bigint - epoch(phases.observed_until)::bigint as seconds,
        phases.next_gpus as gpus,
        false as is_assumed
    from intermediate.ledger__phases as phases
    left join intermediate.interruptions__verdicts as verdicts
        on phases.interruption_id = verdicts.interruption_id
    where phases.next_started_at is not null
)

select * from within
where seconds > 0
union all
select * from measured
union all
select * from between_attempts
where seconds > 0
