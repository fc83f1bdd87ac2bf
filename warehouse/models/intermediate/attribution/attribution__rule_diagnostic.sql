-- One row per diagnostic that failed on a device, by what it tests.
-- A check of software that fails on one GPU of a node only speaks for that GPU; on all, for the software.
with results as (
    select
        *,
        count(distinct device) over (partition by interruption_id, evidence_class, node) as devices
    from intermediate.attribution__candidates
    where evidence_class in ('diagnostic_failed', 'diagnostic_software_failed')
)

select
    interruption_id,
    evidence_id,
    'diagnostic' as rule,
    case
        when evidence_class = 'diagnostic_software_failed' then 'diagnostic_software_one_gpu'
        -- DCGM's error ids: thermal violations and limits; SRAM threshold
        when code in (10, 40, 41, 42) or regexp_matches(text, '(?i)thermal|temperature') then 'diagnostic_thermal'
        when code = 79 or regexp_matches(text, '(?i)\bSRAM\b|\bL[12]\b|volatile_(sm|l1|l2|rf|tex)')
            then 'diagnostic_sram'
        when
            regexp_matches(unit, '(?i)^mem(ory|test)?$|ecc|page|remap')
            or regexp_matches(text, '(?i)remap|double.?bit|uncorrectable|\bDBE\b')
            then 'diagnostic_memory'
        else 'diagnostic_failed'
    end as weight_class
from results
where evidence_class = 'diagnostic_failed' or devices = 1
