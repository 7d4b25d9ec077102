-- What `headway doctor` asks. Each of the first part finds what can never be if all goes well.

-- name: running_without_claim
-- Nobody would ever take in its outcome.
select id from jobs where status = 'running'
  and not exists (select 1 from claims where job_id = jobs.id and state = 'live')
order by id limit :limit

-- name: running_without_run
select id from jobs where status = 'running'
  and not exists (select 1 from runs where job_id = jobs.id and runs.status is null)
order by id limit :limit

-- name: claim_without_running_job
-- It takes up a slot for ever.
select job_id from claims where state = 'live'
  and not exists (select 1 from jobs where id = claims.job_id and status = 'running')
order by job_id limit :limit

-- name: lock_without_holder
-- A lock is held from the claim until the process tree is proven gone.
select job_id from held_locks
where not exists (
  select 1 from claims where claims.job_id = held_locks.job_id and state in ('live', 'ended'))
group by job_id order by job_id limit :limit

-- name: edge_to_missing_job
-- Of jobs that still wait. What is satisfied may be gone: a retry knows it from its predecessor.
select edges.job_id from edges join jobs on jobs.id = edges.job_id
where jobs.finished_at is null and edges.mark <> 'satisfied'
  and (not exists (select 1 from jobs each where each.id = edges.declared)
    or not exists (select 1 from jobs each where each.id = edges.chain))
group by edges.job_id order by edges.job_id limit :limit

-- name: waiting_without_stage
-- No planning step would ever look at it.
select id from jobs where finished_at is null and stage is null and status <> 'running'
order by id limit :limit

-- name: status_against_finish
-- Ended without an end, or an end of what is not ended.
select id from jobs
where (finished_at is null) <> (status in
  ('queued', 'waiting_on_deps', 'waiting_on_approval', 'waiting_on_locks', 'running'))
order by id limit :limit

-- name: run_against_job
-- A run whose job is missing, or that is open although its job has ended.
select job_id from runs
where not exists (select 1 from jobs where id = runs.job_id and (runs.status is not null
  or jobs.status = 'running'))
order by job_id limit :limit

-- name: job_beside_run
-- Only one of the two may be open about a subject.
select jobs.id from jobs join workflow_runs on workflow_runs.subject = jobs.subject
  and workflow_runs.subject is not null and workflow_runs.ended_at is null
where jobs.subject is not null and jobs.finished_at is null and $ALONE
order by jobs.id limit :limit

-- name: unwritten_groups
-- Closed, and all members have ended, but nobody was told.
select id from job_groups where closed_at is not null and ended_at is null
  and not exists (select 1 from jobs where jobs.group_id = job_groups.id and finished_at is null)
  and not exists (select 1 from workflow_runs join workflow_nodes nodes on nodes.run = workflow_runs.id
    join jobs on jobs.id = nodes.chain where workflow_runs.unsettled = 1 and jobs.group_id = job_groups.id)
order by id limit :limit

-- name: next_job_id
select case when value > (select coalesce(max(id), 0) from jobs) then value
  else (select max(id) + 1 from jobs) end
from marks where name = 'next_job_id'

-- name: newest_event
select max(at) from events

-- name: known_ids
select id from jobs where id in $IDS(:ids)

-- name: ids_with_run
-- Of jobs that ended, and whose claims are of this host.
select distinct claims.job_id from claims where host_id = :host_id and state <> 'live'

-- name: breakers
select host_id, kind, cause, failures from breakers order by host_id

-- name: count_jobs
-- How many there are, and how many of them have not ended.
select count(*), count(*) - count(finished_at) from jobs
