-- name: claim_jobs (hot)
-- changes: jobs (takes away)
update jobs set status = 'running', stage = null, wait_kind = null, wait_detail = null, wake_at = null,
  checked_at = null, started_at = :at
where id in $IDS(:ids) and stage is not null
returning id

-- name: add_claims
-- changes: claims (followed)
insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder, claimed_at,
  borrowed_from, probe, function_host, lease_until, occupies)
values (:token, :job_id, 'live', :slot, :worker_id, :host_id, :home, :boot_id, :folder, :claimed_at,
  :borrowed_from, :probe, :function_host, :lease_until, :occupies)

-- name: add_runs (hot)
-- changes: runs
-- The parameters as they are at this instant.
insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts)
select id, :started_at, :worker_id, params, '[]' from jobs where id in $IDS(:ids)

-- name: hold_locks
-- changes: held_locks (holds)
insert into held_locks (key, job_id, mode) values (:key, :job_id, :mode)

-- name: live_claims (hot)
select $CLAIM from claims where state = 'live'

-- name: claims_by_token (hot)
select $CLAIM from claims where token in $TEXTS(:tokens) and state = 'live'

-- name: claim_of_job (hot)
select $CLAIM from claims where job_id = :job_id and state = 'live'

-- name: claims_of_jobs (hot)
-- Also those that have ended.
select $CLAIM from claims where job_id in $IDS(:ids)

-- name: unproven_claims (hot)
-- Settled, but their process trees were not yet seen to be gone.
select $CLAIM from claims where state = 'ended'

-- name: renew_leases (hot)
-- changes: claims (followed)
-- The host's worker is there.
update claims set lease_until = :until where host_id = :host_id and state = 'live'

-- name: cancelling_jobs (hot)
-- Running jobs whose supervisors are to be told.
select id from jobs where cancel_requested_at is not null and finished_at is null

-- name: end_claims (hot)
-- changes: claims (followed)
-- The fence: nothing is written about a claim that this does not find live. Not by the state, which
-- would tempt the database to walk through all that live: by the job.
update claims set state = :state from $ROWS(:rows, job_id bigint, token text)
where claims.job_id = given.job_id $EACH(claims.job_id, :ids) and claims.token = given.token
  and claims.state <> 'ended' and claims.state <> 'gone'
returning claims.token

-- name: prove_claim_gone (hot)
-- changes: claims (followed)
update claims set state = 'gone' where token = :token and state = 'ended'

-- name: forget_claim (hot)
-- changes: claims (followed)
delete from claims where job_id = :job_id and token = :token and state = 'live'

-- name: forget_open_run (hot)
-- changes: runs
delete from runs where job_id = :job_id and status is null

-- name: unclaim_job (hot)
-- changes: jobs
update jobs set status = :status, stage = 'woken', started_at = null, not_before = :not_before,
  launch_failures = :launch_failures, launch_wait = :launch_wait, last_failure = :last_failure
where id = :id and status = 'running'

-- name: finish_jobs (hot)
-- changes: jobs (ends)
-- On PostgreSQL the ids once more, so that each is looked up whatever it thinks of the rows.
update jobs set status = given.status, reason = given.reason, finished_at = given.finished_at,
  stage = null
from $ROWS(:rows, id bigint, status text, reason text, finished_at bigint)
where jobs.id = given.id $EACH(jobs.id, :ids) and jobs.status = 'running'

-- name: cancel_unstarted (hot)
-- changes: jobs
update jobs set status = :status, reason = :reason, finished_at = :finished_at, started_at = null,
  stage = null
where id = :id and status = 'running'

-- name: finish_runs (hot)
-- changes: runs
update runs set status = given.status, exit_code = given.exit_code, error = given.error,
  finished_at = given.finished_at
from $ROWS(:rows, job_id bigint, status text, exit_code bigint, error text, finished_at bigint)
where runs.job_id = given.job_id $EACH(runs.job_id, :ids) and runs.status is null

-- name: add_evidence
-- changes: evidence
insert into evidence (token, kind, job_id, at, document) values (:token, :kind, :job_id, :at, :document)
on conflict do nothing

-- name: release_locks (hot)
-- changes: held_locks
delete from held_locks where job_id in $IDS(:ids) returning key

-- name: lend
-- changes: lendings
insert into lendings (token, job_id, chain, expires_at) values (:token, :job_id, :chain, :expires_at)
on conflict (token) do update set expires_at = excluded.expires_at

-- name: end_lending
-- changes: lendings
delete from lendings where token = :token

-- name: end_lendings_of_jobs (hot)
-- changes: lendings
delete from lendings where job_id in $IDS(:ids)

-- name: end_expired_lendings (hot)
-- changes: lendings
delete from lendings where expires_at < :now

-- name: locks_held
select key, job_id, mode from held_locks order by key, job_id

-- name: lock_waiters
-- Only what is parked under a lock has a mode.
select topic, job_id, mode, reserves from waits where mode is not null
order by topic, level desc, position, created_at, job_id limit :limit

-- name: lock_holders (hot)
select key, job_id, mode from held_locks where key in $TEXTS(:keys)

-- name: first_reservers (hot)
-- The first waiter of one mode that reserves this key.
select job_id, mode, level, position, created_at from waits
where topic = :topic and mode = :mode and reserves = 1
order by level desc, position, created_at, job_id limit 1
