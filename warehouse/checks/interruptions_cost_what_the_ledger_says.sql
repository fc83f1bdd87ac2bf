-- Lost work and stalled time of each interruption are the ledger's, and its lost work is either measured or assumed.
with charged as (
    select
        interruption_id,
        coalesce(sum(seconds) filter (where state = 'lost_work'), 0) as lost_work_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'lost_work'), 0) as lost_work_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state = 'stalled'), 0) as stalled_gpu_seconds
    from marts.ledger
    where interruption_id is not null
    group by interruption_id
)

select
    interruptions.interruption_id,
    interruptions.lost_work_measured_seconds,
    interruptions.lost_work_assumed_seconds,
    interruptions.lost_work_gpu_seconds,
    interruptions.stalled_gpu_seconds,
    charged.lost_work_seconds as ledger_lost_work_seconds,
    charged.stalled_gpu_seconds as ledger_stalled_gpu_seconds
from marts.interruptions as interruptions
left join charged
    on interruptions.interruption_id = charged.interruption_id
where
    (interruptions.lost_work_measured_seconds is null) = (interruptions.lost_work_assumed_seconds is null)
    or coalesce(interruptions.lost_work_measured_seconds, interruptions.lost_work_assumed_seconds, 0)
    <> coalesce(charged.lost_work_seconds, 0)
    or interruptions.lost_work_gpu_seconds <> coalesce(charged.lost_work_gpu_seconds, 0)
    or coalesce(interruptions.stalled_gpu_seconds, 0) <> coalesce(charged.stalled_gpu_seconds, 0)
