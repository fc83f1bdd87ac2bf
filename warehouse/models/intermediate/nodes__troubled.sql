-- One row per node that ever had a fatal event.
select distinct
    cluster,
    node
from intermediate.hardware__events
where is_fatal
