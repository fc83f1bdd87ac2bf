-- One row per diagnostic that failed on a device, by what it tests.
select
    interruption_id,
    evidence_id,
    'diagnostic' as rule,
    case
        -- DCGM's error ids: thermal violations and limits; SRAM threshold
        when code in (10, 40, 41, 42) or regexp_matches(text, '(?i)thermal|temperature') then 'diagnostic_thermal'
        when code = 79 or regexp_matches(text, '(?i)\bSRAM\b|\bL[12]\b') then 'diagnostic_sram'
        when
            regexp_matches(unit, '(?i)^mem(ory|test)?$|ecc|page|remap')
            or regexp_matches(text, '(?i)remap|double.?bit|uncorrectable|\bDBE\b')
            then 'diagnostic_memory'
        else 'diagnostic_failed'
    end as weight_class
from intermediate.attribution__candidates
where evidence_class = 'diagnostic_failed'
