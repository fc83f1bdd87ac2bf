-- An attempt stands once: cluster, raw job id, submission and start are its key.
select
    cluster,
    job_id_raw,
    submitted_at,
    started_at,
    count(*) as attempts
from marts.attempts
group by cluster, job_id_raw, submitted_at, started_at
having count(*) > 1
