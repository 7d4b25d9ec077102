-- name: claim_jobs (hot)
update jobs set status = 'running', stage = null, wait_kind = null, wait_detail = null, wake_at = null,
  checked_at = null, started_at = :at
where id in $IDS(:ids) and stage is not null
returning id

-- name: add_claims
insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder, claimed_at,
  borrowed_from, probe, function_host, lease_until, occupies)
values (:token, :job_id, 'live', :slot, :worker_id, :host_id, :home, :boot_id, :folder, :claimed_at,
  :borrowed_from, :probe, :function_host, :lease_until, :occupies)

-- name: add_runs (hot)
-- The parameters as they are at this instant.
insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts)
select id, :started_at, :worker_id, params, '[]' from jobs where id in $IDS(:ids)

-- name: hold_locks
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
-- The host's worker is there.
update claims set lease_until = :until where host_id = :host_id and state = 'live'

-- name: cancelling_jobs (hot)
-- Running jobs whose supervisors are to be told.
select id from jobs where cancel_requested_at is not null and finished_at is null

-- name: end_claims (hot)
-- The fence: nothing is written about a claim that this does not find live. Not by the state, which
-- would tempt the database to walk through all that live: by the job.
update claims set state = :state from $ROWS(:rows, job_id bigint, token text)
where claims.job_id = given.job_id $EACH(claims.job_id, :ids) and claims.token = given.token
  and claims.state <> 'ended' and claims.state <> 'gone'
returning claims.token

-- name: prove_claim_gone (hot)
update claims set state = 'gone' where token = :token and state = 'ended'

-- name: forget_claim (hot)
delete from claims where job_id = :job_id and token = :token and state = 'live'

-- name: forget_open_run (hot)
delete from runs where job_id = :job_id and status is null

-- name: unclaim_job (hot)
update jobs set status = :status, stage = 'woken', started_at = null, not_before = :not_before,
  launch_failures = :launch_failures, launch_wait = :launch_wait, last_failure = :last_failure
where id = :id and status = 'running'

-- name: finish_jobs (hot)
-- On PostgreSQL the ids once more, so that each is looked up whatever it thinks of the rows.
update jobs set status = given.status, reason = given.reason, finished_at = given.finished_at,
  stage = null
from $ROWS(:rows, id bigint, status text, reason text, finished_at bigint)
where jobs.id = given.id $EACH(jobs.id, :ids) and jobs.status = 'running'

-- name: cancel_unstarted (hot)
update jobs set status = :status, reason = :reason, finished_at = :finished_at, started_at = null,
  stage = null
where id = :id and status = 'running'

-- name: finish_runs (hot)
update runs set status = given.status, exit_code = given.exit_code, error = given.error,
  finished_at = given.finished_at
from $ROWS(:rows, job_id bigint, status text, exit_code bigint, error text, finished_at bigint)
where runs.job_id = given.job_id $EACH(runs.job_id, :ids) and runs.status is null

-- name: add_evidence
insert into evidence (token, kind, job_id, at, document) values (:token, :kind, :job_id, :at, :document)
on conflict do nothing

-- name: release_locks (hot)
delete from held_locks where job_id = :job_id returning key

-- name: lend
insert into lendings (token, job_id, chain, expires_at) values (:token, :job_id, :chain, :expires_at)
on conflict (token) do update set expires_at = excluded.expires_at

-- name: end_lending
delete from lendings where token = :token

-- name: end_lendings_of_jobs (hot)
delete from lendings where job_id in $IDS(:ids)

-- name: end_expired_lendings (hot)
delete from lendings where expires_at < :now

-- name: awaited_edges (hot)
-- The chains that the active job of this chain still waits for, and the one whose turn in a sequential
-- group is next before its own.
select edges.chain from edges
where edges.job_id = $LAST(:chain) and mark = 'pending'
union
select ahead.chain from jobs mine
join job_groups on job_groups.id = mine.group_id and job_groups.mode = 'sequential'
join jobs ahead on ahead.group_id = mine.group_id and ahead.finished_at is null
  and ahead.sequence_number = (
    select max(each.sequence_number) from jobs each where each.group_id = mine.group_id
      and each.finished_at is null and each.sequence_number < mine.sequence_number)
where $CHAIN(mine., = :chain) and mine.finished_at is null and mine.group_id is not null
