-- One row per uncorrectable GPU memory error, located in HBM or SRAM by what the same GPU reported beside it.
-- A remap event (63) alone is no cause; 48, 94 or 95 beside 63, 64 or 171 is HBM; with an SRAM unit named, SRAM.
with errors as (
    select *
    from intermediate.attribution__candidates
    where evidence_class in ('xid_48', 'xid_63', 'xid_64', 'xid_94', 'xid_95', 'xid_140', 'xid_171', 'xid_172')
),

gpus as (
    select
        interruption_id,
        node,
        device,
        bool_or(evidence_class in ('xid_63', 'xid_64', 'xid_171')) as is_remapped,
        -- 140 counts errors by place: DRAM:2, LTC:0, MMU:0, PCIE:0
        bool_or(
            evidence_class = 'xid_64'
            or (
                evidence_class = 'xid_140'
                and (not regexp_matches(text, 'DRAM: *\d') or regexp_matches(text, 'DRAM: *[1-9]'))
            )
        ) as is_dram,
        bool_or(
            evidence_class = 'xid_172'
            or (evidence_class = 'xid_140' and regexp_matches(text, '(LTC|MMU): *[1-9]'))
            or (
                evidence_class not in ('xid_63', 'xid_140')
                and regexp_matches(text, '(?i)\bSRAM\b|\bL2\b|\bLTC\b')
            )
        ) as is_sram,
        -- the unit that met the error, which need not be where it lies
        bool_or(evidence_class <> 'xid_63' and regexp_matches(text, '\bSM\b')) as is_met_by_sm
    from errors
    group by interruption_id, node, device
)

select
    errors.interruption_id,
    errors.evidence_id,
    'gpu_memory' as rule,
    case
        when gpus.is_sram then 'gpu_sram_error'
        when gpus.is_remapped or gpus.is_dram then 'gpu_hbm_error'
        when gpus.is_met_by_sm then 'gpu_sram_error'
        when errors.evidence_class = 'xid_48' then 'gpu_dbe_unlocated'
        else 'gpu_ecc_unlocated'
    end as weight_class
from errors
inner join gpus
    on
        errors.interruption_id = gpus.interruption_id
        and errors.node = gpus.node
        and errors.device is not distinct from gpus.device
where errors.evidence_class <> 'xid_63'
