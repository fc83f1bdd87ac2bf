-- One row per uncorrected PCIe error; on three devices or more of one node the board above them is likelier.
-- Corrected errors speak for nothing.
with errors as (
    select
        *,
        count(*) over (partition by interruption_id, node) as devices_hit
    from intermediate.attribution__candidates
    where evidence_class in ('pcie_aer_fatal', 'pcie_aer_nonfatal')
)

select
    interruption_id,
    evidence_id,
    'pcie' as rule,
    if(devices_hit >= 3, 'pcie_uncorrected_many', 'pcie_uncorrected') as weight_class
from errors
