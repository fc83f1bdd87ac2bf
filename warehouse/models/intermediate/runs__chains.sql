-- One row per attempt of a tracked run: the attempt that begins its run, and its place in it.
with recursive chain as (
    select
        attempts.record_id,
        attempts.record_id as first_record_id,
        1 as run_attempt,
        null::varchar as joined_by
    from intermediate.runs__tracked as attempts
    anti join intermediate.runs__links as links
        on attempts.record_id = links.next_record_id
    union all
    select
        links.next_record_id,
        chain.first_record_id,
        chain.run_attempt + 1,
        links.joined_by
    from chain
    inner join intermediate.runs__links as links
        on chain.record_id = links.record_id
)

select * from chain
