-- One row per cluster and short host name that only one of the scheduler's nodes has: for logs that say GN001.site.
select
    cluster,
    lower(split_part(node, '.', 1)) as short_name,
    min(node) as node
from staging.scheduler__nodes
group by cluster, lower(split_part(node, '.', 1))
having count(*) = 1
