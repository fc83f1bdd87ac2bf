-- One row per cluster of which any hardware event was loaded.
select distinct cluster
from staging.hardware__events
