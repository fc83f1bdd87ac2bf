-- One row per interruption, cause and node it may sit in (null = no node in particular), with its score.
-- The score is a log probability up to a common term. A node's share of the prior is 1 / nodes of the attempt; evidence
-- without a node speaks for every node alike. A fault that shows nothing but that the node was gone, or taken out, has
-- kept silent, which few do.
with pieces as (
    select
        interruption_id,
        cause,
        suspect,
        sum(log_weight order by weight_class) as log_weight,  -- always in one order: the last bits depend on it
        string_agg(distinct weight_class, ' ' order by weight_class) as weight_classes,
        bool_and(
            weight_class in (
                'node_down', 'taken_out_after_end', 'taken_out_unnamed', 'node_left_out', 'reason_health_check',
                'log_nccl_timeout', 'log_nccl_error', 'boot_unexpected', 'reason_unexpected_reboot'
            )
            -- that a node was taken out is what unannounced maintenance is known for
            and not (cause = 'host_maintenance' and weight_class like 'taken_out_%')
            or is_leak
        ) as is_generic
    from intermediate.attribution__weights
    where piece = 1
    group by interruption_id, cause, suspect
),

everywhere as (
    select
        interruption_id,
        cause,
        log_weight,
        weight_classes,
        is_generic
    from pieces
    where suspect is null
),

supported as (
    select
        pieces.interruption_id,
        pieces.cause,
        pieces.suspect,
        ln(priors.prior)
        + pieces.log_weight
        + if(pieces.is_generic and coalesce(everywhere.is_generic, true), ln(priors.p_silent), 0)
        + if(pieces.suspect is null, 0, coalesce(everywhere.log_weight, 0) - ln(greatest(stops.nodes, 1))) as score
    from pieces
    inner join intermediate.attribution__stops as stops
        on pieces.interruption_id = stops.interruption_id
    inner join reference.cause_priors as priors
        on pieces.cause = priors.cause
    left join everywhere
        on
            pieces.interruption_id = everywhere.interruption_id
            and pieces.cause = everywhere.cause
    where
        priors.needs is null
        or regexp_matches(concat_ws(' ', pieces.weight_classes, everywhere.weight_classes), priors.needs)
),

unsupported as (
    select
        stops.interruption_id,
        priors.cause,
        null::varchar as suspect,
        ln(priors.prior) + if(stops.is_progress_observed, ln(priors.p_no_log_error), 0) as score
    from intermediate.attribution__stops as stops
    cross join reference.cause_priors as priors
    anti join supported
        on
            stops.interruption_id = supported.interruption_id
            and priors.cause = supported.cause
    where priors.is_without_evidence
)

select * from supported
union all
select * from unsupported
