-- One row per fault, with when it was cleared.
-- What put the node or GPU right clears it; a fatal one also that steps of the run that held the node went on, and that
-- a job which began later ran well there: both only once its last event is past.
-- Slice: cluster, node
with fatal as (
    select *
    from intermediate.hardware__coalesced
    where is_fatal
),

outlived as (
    select
        fatal.*,
        proven.proven_at,
        if(
            stepped.last_progress_at
            >= greatest(fatal.last_at, stepped.first_step_started_at)
            + to_seconds(attribution.progress_before_seconds),
            greatest(fatal.last_at, stepped.first_step_started_at)
            + to_seconds(attribution.progress_before_seconds),
            null
        ) as outlived_at
    from fatal
    asof left join intermediate.nodes__proven as proven
        on
            fatal.cluster = proven.cluster
            and fatal.node = proven.node
            and fatal.last_at < proven.started_at
    asof left join intermediate.nodes__stepped as stepped
        on
            fatal.cluster = stepped.cluster
            and fatal.node = stepped.node
            and fatal.last_at >= stepped.started_at
    cross join settings.attribution as attribution
    union all by name
    select *
    from intermediate.hardware__coalesced
    where not is_fatal
)

select
    left(
        sha256(
            concat_ws(
                chr(31),
                cluster,
                node,
                evidence_class,
                coalesce(code::varchar, ''),
                coalesce(device, ''),
                epoch_us(first_at)
            )
        ),
        16
    ) as fault_id,
    * exclude (put_right_at, put_right_by, tested_at, proven_at, outlived_at),
    least(put_right_at, tested_at, proven_at, outlived_at) as cleared_at,
    case least(put_right_at, tested_at, proven_at, outlived_at)
        when put_right_at then put_right_by
        when tested_at then 'passed diagnostic'
        when outlived_at then 'steps went on'
        when proven_at then 'a later job ran well'
    end as cleared_by
from outlived
