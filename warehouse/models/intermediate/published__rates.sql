-- One row per count or rate that follows from the paper's other figures: recomputed from them, with its trace.
-- That all days were spent on the printed number of GPUs is assumed: Table 4 names fewer for the first configuration.
with printed as (
    select
        max(if(figure = 'interruptions', printed, null))::bigint as interruptions,
        max(if(figure = 'interruptions_planned', printed, null))::bigint as planned,
        max(if(figure = 'days', printed, null)) as snapshot_days,
        max(if(figure = 'gpus', printed, null))::bigint as gpus,
        max(if(figure = 'gpus_per_node', printed, null))::bigint as gpus_per_node,
        max(if(figure = 'effective_training_time_percent', printed, null)) / 100 as effective_training_time
    from reference.published_figures
),

table5 as (
    select
        sum(interruptions)::bigint as unexpected,
        sum(interruptions) filter (where cause = 'host_maintenance')::bigint as host_maintenance
    from intermediate.published__table5
),

given as (
    select
        printed.*,
        table5.*,
        printed.planned + table5.unexpected as stops,
        printed.snapshot_days * 24 as hours,
        printed.gpus // printed.gpus_per_node as nodes,
        printed.gpus // printed.gpus_per_node * printed.snapshot_days / 1000 as exposure,
        100000 / printed.gpus_per_node / 1000 / 24 as exposure_per_hour
    from printed
    cross join table5
),

figures as (
    select
        unnest([
            {
                'figure': 'interruptions',
                'value': stops,
                'lower': poisson_lower(stops),
                'upper': poisson_upper(stops),
                'trace': printf('%d planned + %d in Table 5', planned, unexpected)
            },
            {
                'figure': 'interruptions_planned',
                'value': interruptions - unexpected,
                'lower': poisson_lower(interruptions - unexpected),
                'upper': poisson_upper(interruptions - unexpected),
                'trace': printf('%d - %d in Table 5', interruptions, unexpected)
            },
            {
                'figure': 'interruptions_unexpected',
                'value': unexpected,
                'lower': poisson_lower(unexpected),
                'upper': poisson_upper(unexpected),
                'trace': 'sum of the counts of Table 5'
            },
            {
                'figure': 'maintenance_interruptions_per_day',
                'value': planned / snapshot_days,
                'lower': poisson_lower(planned) / snapshot_days,
                'upper': poisson_upper(planned) / snapshot_days,
                'trace': printf(
                    '%d planned / %.0f days; %.2f with the %d of Host Maintenance, counted as unexpected',
                    planned, snapshot_days, (planned + host_maintenance) / snapshot_days, host_maintenance
                )
            },
            {
                'figure': 'interruptions_per_day',
                'value': stops / snapshot_days,
                'lower': poisson_lower(stops) / snapshot_days,
                'upper': poisson_upper(stops) / snapshot_days,
                'trace': printf('%d / %.0f days', stops, snapshot_days)
            },
            {
                'figure': 'unexpected_per_day',
                'value': unexpected / snapshot_days,
                'lower': poisson_lower(unexpected) / snapshot_days,
                'upper': poisson_upper(unexpected) / snapshot_days,
                'trace': printf('%d / %.0f days', unexpected, snapshot_days)
            },
            {
                'figure': 'planned_per_day',
                'value': planned / snapshot_days,
                'lower': poisson_lower(planned) / snapshot_days,
                'upper': poisson_upper(planned) / snapshot_days,
                'trace': printf('%d / %.0f days', planned, snapshot_days)
            },
            {
                'figure': 'mtti_hours',
                'value': mtti(hours, stops),
                'lower': mtti_interval(hours, stops).lower,
                'upper': mtti_interval(hours, stops).upper,
                'trace': printf('%.0f h / %d', hours, stops)
            },
            {
                'figure': 'mtti_unexpected_hours',
                'value': mtti(hours, unexpected),
                'lower': mtti_interval(hours, unexpected).lower,
                'upper': mtti_interval(hours, unexpected).upper,
                'trace': printf('%.0f h / %d', hours, unexpected)
            },
            {
                'figure': 'unexpected_per_1000_node_days',
                'value': unexpected / exposure,
                'lower': poisson_interval(unexpected, exposure).lower,
                'upper': poisson_interval(unexpected, exposure).upper,
                'trace': printf('%d / (%d nodes x %.0f days / 1,000)', unexpected, nodes, snapshot_days)
            },
            {
                'figure': 'gpu_hours_per_unexpected',
                'value': gpus * mtti(hours, unexpected),
                'lower': gpus * mtti_interval(hours, unexpected).lower,
                'upper': gpus * mtti_interval(hours, unexpected).upper,
                'trace': printf('%d GPUs x %.0f h / %d', gpus, hours, unexpected)
            },
            {
                'figure': 'longest_mean_loss_minutes',
                'value': (1 - effective_training_time) * hours * 60 / stops,
                'lower': null,
                'upper': null,
                'trace': printf('(1 - %.2f) x %.0f h x 60 / %d', effective_training_time, hours, stops)
            },
            {
                'figure': 'longest_mean_loss_unexpected_minutes',
                'value': (1 - effective_training_time) * hours * 60 / unexpected,
                'lower': null,
                'upper': null,
                'trace': printf('(1 - %.2f) x %.0f h x 60 / %d', effective_training_time, hours, unexpected)
            },
            {
                'figure': 'hours_between_unexpected_at_100000_gpus',
                'value': exposure / (unexpected * exposure_per_hour),
                'lower': exposure / (poisson_upper(unexpected) * exposure_per_hour),
                'upper': exposure / (poisson_lower(unexpected) * exposure_per_hour),
                'trace': printf(
                    '24 h x 1,000 / (%.0f nodes x %.2f per 1,000 node-days)',
                    100000 / gpus_per_node, unexpected / exposure
                )
            }
        ]) as f
    from given
)

select
    f.figure,
    f.value,
    f.lower,
    f.upper,
    f.trace
from figures
