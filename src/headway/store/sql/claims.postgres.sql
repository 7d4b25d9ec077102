-- Claims on PostgreSQL, where to hear what a change has changed is a round trip of its own. These are told,
-- and nobody waits for the answer: the database itself refuses the whole transaction if they do not
-- find every row as it was read before. Nobody who takes turns can have changed it since.

-- name: end_claims_surely
with ended as (
  update claims set state = :state from $ROWS(:rows, job_id bigint, token text)
  where claims.job_id = given.job_id $EACH(claims.job_id, :ids) and claims.token = given.token
    and claims.state <> 'ended' and claims.state <> 'gone'
  returning 1
)
select cast(case count(*) when :count then '1'
            else 'headway: a claim has ended that was live; nothing was changed' end as bigint)
from ended

-- name: claim_jobs_surely
with claimed as (
  update jobs set status = 'running', stage = null, wait_kind = null, wait_detail = null,
    wake_at = null, checked_at = null, started_at = :at
  where id in $IDS(:ids) and stage is not null
  returning 1
)
select cast(case count(*) when :count then '1'
            else 'headway: a job is no longer waiting; nothing was changed' end as bigint)
from claimed
