-- Claims on PostgreSQL, where to hear what a change has changed is a round trip of its own. These are told,
-- and nobody waits for the answer: the database itself refuses the whole transaction if they do not
-- find every row as it was read before. Nobody who takes turns can have changed it since.

-- name: end_claims_surely
-- changes: claims (followed)
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
-- changes: jobs (followed)
with claimed as (
  update jobs set status = 'running', stage = null, wait_kind = null, wait_detail = null,
    wake_at = null, checked_at = null, started_at = :at
  where id in $IDS(:ids) and stage is not null
  returning 1
)
select cast(case count(*) when :count then '1'
            else 'headway: a job is no longer waiting; nothing was changed' end as bigint)
from claimed

-- name: finish_one_surely
-- changes: claims, jobs, runs (followed)
-- As `end_claims_surely`, `finish_jobs` and `finish_runs`, for a single claim.
with ended as (
  update claims set state = :state
  where job_id = :job_id and token = :token and state <> 'ended' and state <> 'gone'
  returning 1
), finished as (
  update jobs set status = :status, reason = :reason, finished_at = :finished_at, stage = null
  where id = :job_id and status = 'running'
), run as (
  update runs set status = :run_status, exit_code = :exit_code, error = :error,
    finished_at = :finished_at
  where job_id = :job_id and status is null
)
select cast(case count(*) when 1 then '1'
            else 'headway: a claim has ended that was live; nothing was changed' end as bigint)
from ended

-- name: claim_one_surely
-- changes: jobs, waits, claims, runs (followed)
-- As `claim_jobs_surely`, `clear_waits`, `add_claims` and `add_runs`, for a single job.
with claimed as (
  update jobs set status = 'running', stage = null, wait_kind = null, wait_detail = null,
    wake_at = null, checked_at = null, started_at = :claimed_at
  where id = :job_id and stage is not null
  returning params
), cleared as (
  delete from waits where job_id = :job_id
), claim as (
  insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder,
    claimed_at, borrowed_from, probe, function_host, lease_until, occupies)
  values (:token, :job_id, 'live', :slot, :worker_id, :host_id, :home, :boot_id, :folder,
    :claimed_at, :borrowed_from, :probe, :function_host, :lease_until, :occupies)
), run as (
  insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts)
  select :job_id, :claimed_at, :worker_id, params, '[]' from claimed
)
select cast(case count(*) when 1 then '1'
            else 'headway: a job is no longer waiting; nothing was changed' end as bigint)
from claimed
