-- One row per uncorrected PCIe error, or PCIe link that went down.
-- A driver that reports the error names its device: an adapter or a drive. On three devices or more of one node the
-- board above them is likelier. Corrected errors speak for nothing.
with errors as (
    select
        *,
        sum((evidence_class <> 'pcie_link_down')::int) over (partition by interruption_id, node) as devices_hit
    from intermediate.attribution__candidates
    where evidence_class in ('pcie_aer_fatal', 'pcie_aer_nonfatal', 'pcie_link_down')
)

select
    interruption_id,
    evidence_id,
    'pcie' as rule,
    case
        when evidence_class = 'pcie_link_down' then 'pcie_link_down'
        when devices_hit >= 3 then 'pcie_uncorrected_many'
        when regexp_matches(text, '^(mlx5_core|mlx4_core|bnxt_en|i40e|ice|irdma)\b') then 'pcie_uncorrected_nic'
        when regexp_matches(text, '^(nvme|megaraid|mpt3sas|ahci)') then 'pcie_uncorrected_drive'
        else 'pcie_uncorrected'
    end as weight_class
from errors
