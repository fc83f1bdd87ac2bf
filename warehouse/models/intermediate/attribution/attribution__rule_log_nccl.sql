-- One row per time-out or error of NCCL in the training log: ranks tell of a rank that is gone or hangs.
select
    interruption_id,
    evidence_id,
    'log_nccl' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where
    evidence_class in (
        'log_nccl_timeout', 'log_nccl_error', 'log_port_error'
    )
