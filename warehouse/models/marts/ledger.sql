-- One row per tracked run and interval of one state: where every GPU-second of the run's elapsed time went.
-- What a log or the scheduler shows is measured; what follows from configured intervals is assumed.
select
    cluster,
    run_id,
    run_attempt,
    interruption_id,
    state,
    started_at,
    started_at + to_seconds(seconds) as ended_at,
    seconds,
    gpus,
    seconds * gpus as gpu_seconds,
    if(is_assumed, null, seconds * gpus) as measured_gpu_seconds,
    if(is_assumed, seconds * gpus, null) as assumed_gpu_seconds
from intermediate.ledger__intervals
