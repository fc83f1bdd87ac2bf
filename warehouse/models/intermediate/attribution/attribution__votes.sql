-- One row per rule and piece of evidence it speaks of.
-- Parts: intermediate.attribution__rule_*, intermediate.attribution__crowds, intermediate.attribution__orderly
-- Slice: interruption_id
-- Dirty: select interruption_id from delta.intermediate__attribution__candidates
-- Dirty: union all select interruption_id from delta.intermediate__attribution__stops
-- Dirty: union all select interruption_id from delta.intermediate__attribution__event_windows
-- Dirty: union all select stops.interruption_id from intermediate.attribution__stops as stops
-- Dirty: inner join (
-- Dirty: select cluster, first_at, cleared_at from delta.intermediate__hardware__faults where is_fatal
-- Dirty: group by cluster, node, first_at, cleared_at having sum(_times) <> 0
-- Dirty: ) as faults on stops.cluster = faults.cluster
-- Dirty: where date_trunc('second', faults.first_at) <= stops.ended_at
-- Dirty: and (faults.cleared_at is null or faults.cleared_at > stops.ended_at)
-- Dirty: union all select candidates.interruption_id from intermediate.attribution__candidates as candidates
-- Dirty: semi join delta.intermediate__hardware__faults as faults
-- Dirty: on faults.is_fatal and candidates.cluster = faults.cluster and candidates.node = faults.node
-- Dirty: where candidates.is_planned_rollout
select * from intermediate.attribution__rule_gpu_lost
union all
select * from intermediate.attribution__rule_gpu_nvlink
union all
select * from intermediate.attribution__rule_gpu_memory
union all
select * from intermediate.attribution__rule_gpu_system_processor
union all
select * from intermediate.attribution__rule_gpu_other
union all
select * from intermediate.attribution__rule_network_link
union all
select * from intermediate.attribution__rule_nic
union all
select * from intermediate.attribution__rule_pcie
union all
select * from intermediate.attribution__rule_host_hardware
union all
select * from intermediate.attribution__rule_filesystem
union all
select * from intermediate.attribution__rule_kernel
union all
select * from intermediate.attribution__rule_unexpected_reboot
union all
select * from intermediate.attribution__rule_node_down
union all
select * from intermediate.attribution__rule_node_reason
union all
select * from intermediate.attribution__rule_host_maintenance
union all
select * from intermediate.attribution__rule_out_of_memory
union all
select * from intermediate.attribution__rule_process_fault
union all
select * from intermediate.attribution__rule_standing_fault
union all
select * from intermediate.attribution__rule_preempted
union all
select * from intermediate.attribution__rule_planned_window
union all
select * from intermediate.attribution__rule_planned_rollout
union all
select * from intermediate.attribution__rule_operator_change
union all
select * from intermediate.attribution__rule_time_limit
union all
select * from intermediate.attribution__rule_job_cancelled
union all
select * from intermediate.attribution__rule_diagnostic
union all
select * from intermediate.attribution__rule_log_error
union all
select * from intermediate.attribution__rule_log_nccl
union all
select * from intermediate.attribution__rule_log_loss
union all
select * from intermediate.attribution__rule_silent_rank
union all
select * from intermediate.attribution__rule_bmc
union all
select * from intermediate.attribution__rule_health_check
union all
select * from intermediate.attribution__rule_left_out
union all
select * from intermediate.attribution__rule_host_reboot
