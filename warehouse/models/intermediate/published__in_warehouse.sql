-- One row per published figure that this warehouse can tell too, as it tells it of the one run that compares.
-- A run compares with the paper's if it had the same number of GPUs and took the same time within 2 %; of several the
-- nearest in time, then the first by id.
with printed as (
    select
        max(if(figure = 'days', printed, null)) as snapshot_days,
        max(if(figure = 'gpus', printed, null)) as gpus
    from reference.published_figures
),

run as (
    select
        runs.*,
        runs.elapsed_hours / 24 as elapsed_days
    from marts.runs as runs
    inner join printed
        on
            runs.gpus = printed.gpus
            and abs(runs.elapsed_hours / 24 / printed.snapshot_days - 1) <= 0.02
    order by
        abs(runs.elapsed_hours / 24 - printed.snapshot_days) asc,
        runs.run_id asc
    limit 1
),

-- GPUs of a node of the run
node_size as (
    select max(attempts.gpus / nullif(attempts.nodes, 0)) as gpus_per_node
    from marts.attempts as attempts
    inner join run
        on attempts.run_id = run.run_id
),

stops as (
    select
        count(*) filter (where interruptions.recovery = 'manual') as manual,
        count(*) filter (where interruptions.cause = 'planned_maintenance') as maintenance
    from marts.interruptions as interruptions
    inner join run
        on interruptions.run_id = run.run_id
),

causes as (
    select root_causes.*
    from marts.root_causes as root_causes
    inner join run
        on root_causes.run_id = run.run_id
    where root_causes.class = 'unexpected'
),

tallies as (
    select
        figures.figure,
        any_value(figures.unit) as unit,
        coalesce(sum(case
            when figures.figure = 'hardware_share_percent' and causes.category in (
                'GPU', 'Host', 'Unplanned Maintenance'
            ) then causes.interruptions
            when figures.figure = 'hardware_share_percent_matching' and causes.category not in (
                'Dependency', 'Network'
            ) then causes.interruptions
            when figures.figure = 'hardware_share_percent_by_cause'
                then causes.hardware_confirmed + causes.hardware_suspected
            when figures.cause = causes.cause or figures.category = causes.category then causes.interruptions
        end), 0) as interruptions
    from reference.published_figures as figures
    left join causes
        on true
    where
        figures.cause is not null
        or figures.category is not null
        or figures.figure like 'hardware_share_percent%'
    group by figures.figure
),

totals as (
    select
        unnest([
            struct_pack(figure := 'interruptions', value := run.interruptions),
            struct_pack(figure := 'interruptions_planned', value := run.planned),
            struct_pack(figure := 'interruptions_unexpected', value := run.unexpected),
            struct_pack(figure := 'days', value := run.elapsed_days),
            struct_pack(figure := 'gpus', value := run.gpus),
            struct_pack(figure := 'gpus_per_node', value := node_size.gpus_per_node),
            struct_pack(figure := 'effective_training_time_percent', value := 100 * run.effective_training_time),
            struct_pack(figure := 'manual_interventions', value := stops.manual),
            struct_pack(figure := 'maintenance_interruptions_per_day', value := stops.maintenance / run.elapsed_days),
            struct_pack(figure := 'interruptions_per_day', value := run.interruptions / run.elapsed_days),
            struct_pack(figure := 'unexpected_per_day', value := run.unexpected / run.elapsed_days),
            struct_pack(figure := 'planned_per_day', value := run.planned / run.elapsed_days),
            struct_pack(figure := 'mtti_hours', value := run.mtti_hours),
            struct_pack(figure := 'mtti_unexpected_hours', value := run.mtti_unexpected_hours),
            struct_pack(
                figure := 'unexpected_per_1000_node_days',
                value := run.unexpected * 1000 * 86400 * node_size.gpus_per_node / run.elapsed_gpu_seconds
            ),
            struct_pack(
                figure := 'gpu_hours_per_unexpected',
                value := run.elapsed_gpu_seconds / 3600 / nullif(run.unexpected, 0)
            ),
            struct_pack(
                figure := 'hours_between_unexpected_at_100000_gpus',
                value := run.elapsed_gpu_seconds / 3600 / 100000 / nullif(run.unexpected, 0)
            )
        ]) as f
    from run
    cross join node_size
    cross join stops
)

select
    run.cluster,
    run.run_id,
    tallies.figure,
    if(
        tallies.unit = 'percent', 100 * tallies.interruptions / nullif(run.unexpected, 0), tallies.interruptions
    ) as amount
from run
cross join tallies
union all
select
    run.cluster,
    run.run_id,
    totals.f.figure,
    totals.f.value as amount
from run
cross join totals
