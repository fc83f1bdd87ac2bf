-- One row per record of a node's state and export that tells it: the lake's records beside the build, see
-- staging.scheduler__told_jobs.
-- Slice: export_id
select * exclude (line)
from lake.node_states
