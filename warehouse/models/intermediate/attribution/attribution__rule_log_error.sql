-- One row per error of a program, of CUDA, of storage or of a name service in the training log.
select
    interruption_id,
    evidence_id,
    'log_error' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where
    evidence_class in (
        'log_program_error', 'log_cuda_program_error', 'log_cuda_device_error', 'log_gpu_memory_error',
        'log_gpu_out_of_memory', 'log_storage_error', 'log_name_service_error'
    )
