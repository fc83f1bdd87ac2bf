-- One row per piece of evidence and cause it speaks of, with its weight.
-- `log_weight` is the natural logarithm of how much likelier the piece is under the cause than by chance. P(evidence |
-- cause) is documented; chance is the fleet's own rate x window, on one node for a cause that sits in one node, on all
-- of the attempt's nodes for any other. What a cause shows it shows near the stop: `nearness` is how much denser such
-- evidence lies there than chance does, so the ratio is 1 - P + P x nearness / chance. However often a class is
-- repeated on a node it counts once, by its strongest piece.
-- A broken node shows more than what its cause is known for: what else its node shows has a documented leak of
-- probability under a cause that something on the node speaks for.
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__attribution__candidates
-- Dirty: union all select interruption_id from delta.intermediate__attribution__votes
-- Dirty: union all select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from delta.intermediate__attribution__event_windows
-- Dirty: union all select candidates.interruption_id from intermediate.attribution__candidates as candidates
-- Dirty: inner join (
-- Dirty: select cluster, evidence_class from delta.intermediate__attribution__background
-- Dirty: union select cluster, evidence_class from delta.intermediate__attribution__crowd_rates
-- Dirty: ) as rates on candidates.cluster = rates.cluster and candidates.evidence_class = rates.evidence_class
with spread as (
    select
        candidates.interruption_id,
        candidates.evidence_class,
        count(distinct candidates.node) as nodes
    from intermediate.attribution__votes as votes
    inner join intermediate.attribution__candidates as candidates
        on votes.evidence_id = candidates.evidence_id
    semi join reference.evidence_weights as weights
        on votes.weight_class = weights.weight_class
    group by candidates.interruption_id, candidates.evidence_class
),

voted as (
    select
        votes.rule,
        votes.weight_class,
        candidates.* exclude (chance),
        candidates.chance as chance_told,
        own.evidence_class is not null as has_own_window,
        (
            stops.is_progress_observed
            and candidates.kind = 'hardware event'
            and candidates.last_at < stops.stopped_at
        ) as is_before_progress,
        (
            stops.is_advancing
            and candidates.kind = 'hardware event'
            and candidates.first_at > stops.ended_at + to_seconds(timing.near_before_progress_seconds)
        ) as is_after_steady_end,
        weights.cause,
        weights.p_given_cause,
        weights.p_by_chance,
        if(coalesce(weights.scope, priors.scope) = 'node', candidates.node, null) as suspect,
        if(
            coalesce(weights.scope, priors.scope) = 'node' and candidates.node is not null, 1, coalesce(stops.nodes, 1)
        ) as exposed_nodes,
        -- what many nodes of the attempt show alike is common there, whatever the fleet's rate says; the share of the
        -- others that show it is then the chance on one node. Fatal faults do not come about in common by chance.
        if(candidates.is_fatal, 0, (spread.nodes - 1) / greatest(coalesce(stops.nodes, 1), 1)) as share_of_others,
        coalesce(
            own.before_seconds + own.after_seconds,
            epoch(windows.closes_at)::bigint - epoch(windows.opens_at)::bigint,
            epoch(stops.ended_at)::bigint - epoch(stops.opens_at)::bigint + attribution.after_seconds
        ) as window_seconds
    from intermediate.attribution__votes as votes
    inner join intermediate.attribution__candidates as candidates
        on votes.evidence_id = candidates.evidence_id
    inner join reference.evidence_weights as weights
        on votes.weight_class = weights.weight_class
    inner join reference.cause_priors as priors
        on weights.cause = priors.cause
    inner join intermediate.attribution__stops as stops
        on votes.interruption_id = stops.interruption_id
    inner join spread
        on
            candidates.interruption_id = spread.interruption_id
            and candidates.evidence_class is not distinct from spread.evidence_class
    left join intermediate.attribution__own_windows as own
        on candidates.evidence_class = own.evidence_class
    left join intermediate.attribution__event_windows as windows
        on candidates.interruption_id = windows.interruption_id and candidates.node = windows.node
    cross join reference.evidence_timing as timing
    cross join settings.attribution as attribution
),

once as (
    select *
    from voted
    where suspect is not null
    qualify row_number() over (partition by evidence_id, weight_class order by cause) = 1
),

spoken as (
    select distinct
        interruption_id,
        suspect,
        cause
    from voted
    where suspect is not null
),

leaks as (
    select
        voted.* replace (
            spoken.cause as cause, priors.p_leak as p_given_cause
        ),
        true as is_leak
    from once as voted
    inner join spoken
        on voted.interruption_id = spoken.interruption_id and voted.suspect = spoken.suspect
    anti join voted as listed
        on
            voted.evidence_id = listed.evidence_id
            and voted.weight_class = listed.weight_class
            and spoken.cause = listed.cause
    inner join reference.cause_priors as priors
        on spoken.cause = priors.cause
    where priors.p_leak > 0
),

pieces as (
    select
        *,
        false as is_leak
    from voted
    union all by name
    select * from leaks
),

chances as (
    select
        voted.*,
        coalesce(
            voted.chance_told,
            -- what many nodes show at once is as common as crowds of them are
            if(
                voted.suspect is null and voted.kind = 'hardware event' and crowds.rate_per_second is not null,
                greatest(voted.p_by_chance, 1 - exp(-crowds.rate_per_second * voted.window_seconds)),
                null
            ),
            voted.p_by_chance,
            greatest(
                1 - exp(-background.rate_per_node_second * voted.window_seconds * voted.exposed_nodes),
                if(voted.suspect is null, 0, least(voted.share_of_others, 1))
            )
        ) as chance,
        case
            when voted.kind not in ('hardware event', 'node state') or voted.has_own_window then 1
            -- steps went on until an end that it came after
            when voted.is_after_steady_end then 1 - timing.near_share_observed
            when
                voted.seconds_from_stop
                <= if(voted.is_before_progress, timing.near_before_progress_seconds, timing.near_seconds)
                then 1 - timing.near_share + timing.near_share * voted.window_seconds / (2 * timing.near_seconds)
            -- steps went on after it
            when voted.is_before_progress then 1 - timing.near_share_observed
            else 1 - timing.near_share
        end as nearness
    from pieces as voted
    left join intermediate.attribution__background as background
        on
            voted.cluster = background.cluster
            and voted.evidence_class = background.evidence_class
    left join intermediate.attribution__crowd_rates as crowds
        on
            voted.cluster = crowds.cluster
            and voted.evidence_class = crowds.evidence_class
            and voted.p_by_chance is not null
    cross join reference.evidence_timing as timing
),

weighed as (
    select
        * replace (greatest(chance, 1e-7) as chance),
        ln(1 - p_given_cause + p_given_cause * nearness / greatest(chance, 1e-7)) as log_weight
    from chances
)

select
    *,
    row_number() over (
        partition by interruption_id, cause, suspect, weight_class
        order by
            round(log_weight, 9) desc,
            first_at asc,
            evidence_id asc
    ) as piece
from weighed
