-- One row per uncorrected host hardware error: machine check, memory, disk, temperature.
select
    interruption_id,
    evidence_id,
    'host_hardware' as rule,
    evidence_class as weight_class
from intermediate.attribution__candidates
where
    evidence_class in (
        'mce_uncorrected', 'edac_uncorrected', 'memory_failure', 'nvme_fatal', 'nvme_nonfatal', 'block_io',
        'filesystem_read_only', 'thermal', 'gpu_thermal'
    )
