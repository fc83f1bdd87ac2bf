-- One row per failure that the board management controller recorded, where it stayed: power, fans, temperature,
-- processor, memory, bus, drive. On five nodes or more at once, power is the facility's.
with records as (
    select
        *,
        count(distinct if(evidence_class like 'sel_power%', node, null)) over (
            partition by interruption_id
        ) as nodes_without_power
    from intermediate.attribution__candidates
    where evidence_class like 'sel_%'
),

classed as (
    select
        interruption_id,
        evidence_id,
        case
            when evidence_class like 'sel_power%' and nodes_without_power >= 5 then 'power_lost_many'
            when evidence_class in (
                'sel_power_supply_failure', 'sel_power_input_lost', 'sel_power_redundancy_lost', 'sel_power_off'
            ) then 'power_lost'
            when evidence_class = 'sel_voltage_critical' then 'voltage_critical'
            when evidence_class = 'sel_board_fault' then 'board_fault'
            when evidence_class = 'sel_sensor_unreadable' and device_kind = 'gpu' then 'gpu_sensor_unreadable'
            when evidence_class in ('sel_fan', 'sel_cooling_redundancy_lost') then 'fan_failed'
            when evidence_class = 'sel_temperature_critical' and device_kind = 'gpu' then 'gpu_too_hot'
            when evidence_class = 'sel_temperature_critical' then 'host_too_hot'
            when evidence_class = 'sel_processor_error' then 'processor_error'
            when evidence_class = 'sel_memory_uncorrected' then 'bmc_memory_uncorrected'
            when evidence_class = 'sel_critical_interrupt' then 'critical_interrupt'
            when evidence_class = 'sel_drive_fault' then 'drive_fault'
        end as weight_class
    from records
)

select
    interruption_id,
    evidence_id,
    'bmc' as rule,
    weight_class
from classed
where weight_class is not null
