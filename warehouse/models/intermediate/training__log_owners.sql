-- One row per stretch of time of a cluster in which a log that names no job speaks of one tracked attempt, or of none.
-- While attempts run side by side nobody knows which of them it is. What is logged within five minutes after an end
-- still belongs to the attempt that ended, unless another starts; an attempt last seen running may have gone on.
with attempts as (
    select
        cluster,
        record_id,
        started_at,
        observed_until,
        ended_at is null as is_running,
        row_number() over (partition by cluster order by started_at, record_id) as place
    from intermediate.runs__tracked
),

turns as (
    select
        cluster,
        started_at as turn_at,
        1 as step_by,
        place
    from attempts
    union all
    select
        cluster,
        observed_until as turn_at,
        -1 as step_by,
        -place as place
    from attempts
),

instants as (
    select
        cluster,
        turn_at,
        sum(step_by) as step_by,
        sum(place) as place,
        max(-place) filter (where step_by < 0) as ended_place
    from turns
    group by cluster, turn_at
),

running as (
    select
        cluster,
        turn_at,
        ended_place,
        sum(step_by) over so_far as attempts,
        -- while one runs, the sum of places is its own
        sum(place) over so_far as place,
        coalesce(lead(turn_at) over (partition by cluster order by turn_at), 'infinity'::timestamptz) as next_turn_at
    from instants
    window so_far as (partition by cluster order by turn_at rows unbounded preceding)
),

owned as (
    select
        cluster,
        turn_at,
        next_turn_at,
        greatest(attempts, 1) as attempts,
        attempts = 0 as is_over,
        case attempts when 1 then place when 0 then ended_place end as place
    from running
)

select
    owned.cluster,
    owned.turn_at as from_at,
    if(
        owned.is_over and not attempts.is_running,
        least(owned.turn_at + interval 5 minute, owned.next_turn_at),
        owned.next_turn_at
    ) as until_at,
    owned.attempts,
    attempts.record_id
from owned
left join attempts
    on owned.cluster = attempts.cluster and owned.place = attempts.place
