-- Which Xids stand in the fleet that stopped nothing?
with standing as (
    select
        cluster,
        code,
        node,
        device,
        is_fatal,
        last_at
    from marts.faults as f
    where
        class = 'xid' and cleared_at is null
        -- Xids that a driver prints when it tears down a process (43, 45) are no trouble of their own.
        and code::varchar not in (
            select c.code
            from reference.event_classes as c
            where c.event_class = 'xid' and c.is_cleanup
        )
        and not exists (
            select 1
            from marts.interruption_evidence as e
            inner join marts.interruptions as i on e.interruption_id = i.interruption_id
            where
                i.cluster = f.cluster and e.node = f.node and e.class = f.evidence_class
                and e.role in ('initiating', 'cascade') and e.occurred_at between f.first_at and f.last_at
        )
)

select
    s.cluster,
    s.code as xid,
    x.mnemonic,
    count_if(s.is_fatal) as fatal,
    count(distinct concat(s.node, ' ', s.device)) as gpus,
    count(distinct s.node) as nodes,
    max(s.last_at) as newest_at,
    x.nvidia_action
from standing as s
left join reference.xid_catalog as x on s.code = x.code
group by s.cluster, s.code, x.mnemonic, x.nvidia_action
order by s.cluster asc, fatal desc, gpus desc, xid asc;
