-- What stopped my runs in the newest 30 days, and what did it cost?
select
    label,
    class,
    interruptions,
    incidents,
    (100 * share_of_unexpected)::decimal(4, 1) as percent_of_unexpected,
    lost_gpu_hours::bigint as lost_gpu_hours
from
    root_causes_between(
        'atlas',
        (
            select max(observed_until) - interval 30 days
            from marts.runs
            where cluster = 'atlas'
        ),
        timestamptz 'infinity'
    )
order by lost_gpu_hours desc, label asc, class asc;
