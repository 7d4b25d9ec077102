-- The next id is the one after the last job's, unless the mark is beyond it: it is raised when ids are
-- taken for jobs that are still to come, and when jobs go. So a plain submit does not write it.

-- name: take_ids (hot)
-- changes: marks
-- Reserve :count consecutive job ids and say the first of them.
update marks set value = :count + case
    when value > (select coalesce(max(id), 0) from jobs) then value
    else (select max(id) + 1 from jobs) end
where name = 'next_job_id' returning value - :count

-- name: add_jobs
-- changes: jobs
insert into jobs ($NEW, launch_failures, wait_kind, wait_detail, wake_at, checked_at, waited_on)
values ($VALUES, 0, :wait_kind, :wait_detail, :wake_at, :checked_at, :waited_on)

-- name: next_places (hot)
-- The id that the first of new jobs would get, how much further than that new jobs stand, and the ageing
-- that is set.
select case when value > (select coalesce(max(id), 0) from jobs) then value
    else (select max(id) + 1 from jobs) end,
  (select value from marks where name = 'positions_ahead'),
  (select settings.value from settings where key = 'scheduler.ageing')
from marks where name = 'next_job_id'

-- name: add_alike
-- changes: jobs
-- Jobs that differ in nothing but their parameters, each with the id and the position of its place.
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
  after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
  launch_failures, stage, waited_on, queue, level)
select :first + place, :name, :type, 'queued', :priority, :position + :gap * place, given.params, :at,
  :first + place, :slug, :labels, '[]', '[]', :retry, 1, 0, :env_digest, '', :on_finish, :submitted_by, 0, :stage,
  '[]', :queue, :priority
from $LISTS(:rows, place bigint, params text)

-- name: tell_alike
-- changes: events
-- The event of each of the jobs from :first on, which have one name.
insert into events (at, actor, kind, job_id, data)
select created_at, submitted_by, 'submitted', id, :data from jobs
where id >= :first and id < :first + :count order by id

-- name: copy_edges
-- changes: edges
-- A retry waits for what its predecessor in the chain waited for; what was satisfied stays so.
insert into edges (job_id, ord, declared, chain, mark)
select :to_job, ord, declared, chain, mark from edges where job_id = :from_job

-- name: ends_of_chains (hot)
-- Of each of these jobs its chain, and how that stands: the status of its last job.
select declared.id, declared.chain, last.status
from jobs declared join jobs last on last.id = $LAST(declared.chain)
where declared.id in $IDS(:ids)

-- name: jobs_by_id (hot)
select $JOB from jobs where id in $IDS(:ids)

-- name: job_by_key (hot)
select $JOB from jobs where idempotency_key = :key

-- name: active_with_slug (hot)
select $JOB from jobs where slug = :slug and finished_at is null order by id limit :limit

-- name: last_with_slug (hot)
-- The one that ended last.
select $JOB from jobs where slug = :slug and finished_at is not null
order by finished_at desc, id desc limit 1

-- name: last_in_chain (hot)
select $JOB from jobs where id = $LAST(:chain)

-- name: chain_of (hot)
select $JOB from jobs where $CHAIN(jobs., = :chain) order by id

-- name: active_jobs
select $JOB from jobs where id in (select id from active) order by created_at, id

-- name: finished_jobs
-- The newest :limit jobs that ended since :since.
select $JOB from jobs where finished_at >= :since order by finished_at desc limit :limit

-- name: ended_without_success
-- The newest :limit of those that ended so since :since, without success, and that nobody retried, among the newest
-- :most that ended: so a million calls that succeeded cost no more than that. What is blocked by one comes after it.
select $JOB from jobs where id in (
  select id from jobs where finished_at >= :since order by finished_at desc limit :most)
  and status <> 'succeeded' and status <> 'skipped' and status in $TEXTS(:statuses)
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
order by case status when 'blocked_by_dependency' then 1 else 0 end, finished_at desc, id desc limit :limit

-- name: count_waiting
-- How many wait in each stage, and what they show. By sums: to group by the status, too, takes three times as
-- long.
select stage, count(*),
  sum(case when status = 'waiting_on_deps' then 1 else 0 end),
  sum(case when status = 'waiting_on_locks' then 1 else 0 end),
  sum(case when status = 'waiting_on_approval' then 1 else 0 end)
from jobs where stage is not null group by stage

-- name: count_waits
-- What the jobs that were looked at wait for.
select wait_kind, count(*) from jobs where stage is not null and wait_kind is not null group by wait_kind

-- name: oldest_ready
select min(created_at) from jobs where stage = 'ready'

-- name: count_running
select count(*) from claims where state = 'live'

-- name: count_finished
select status, count(*) from jobs where finished_at >= :since group by status

-- name: any_active (hot)
select 1 from active limit 1

-- name: outlines_shown
-- What a schedule shows unless told otherwise: active jobs, blocked ones that nobody retried, and the
-- ends of failed chains that hold one of those back.
with shown(id) as (
  select id from active
  union all
  select id from jobs where (status = 'blocked_by_dependency' or status = 'blocked_by_approval')
    and status <> 'succeeded' and finished_at is not null
    and not exists (select 1 from jobs later where later.retry_of = jobs.id))
select $OUTLINE from jobs where id in (
  select id from shown
  union all
  select $LAST(edges.chain) from edges
  where mark = 'failed' and job_id in (select id from shown))
order by created_at, id limit :limit

-- name: outlines_all
select $OUTLINE from jobs order by created_at, id limit :limit

-- name: outlines_by_id (hot)
select $OUTLINE from jobs where id in $IDS(:ids)

-- name: outlines_of_ends (hot)
-- The last job of each of these chains.
select $OUTLINE from jobs where id in (
  select max(id) from jobs where $CHAIN(jobs., in $IDS(:chains)) group by chain)

-- name: count_ended
-- All that ended, and of these those that are blocked and that nobody retried.
select (select count(*) from jobs where finished_at is not null),
  (select count(*) from jobs where (status = 'blocked_by_dependency' or status = 'blocked_by_approval')
     and status <> 'succeeded' and finished_at is not null
     and not exists (select 1 from jobs later where later.retry_of = jobs.id))

-- name: env_digests_in_use
-- Of active jobs, and of those that ended since :since.
select env_digest from jobs where finished_at is null and env_digest is not null
union
select env_digest from jobs where finished_at >= :since and env_digest is not null

-- name: request_cancel (hot)
-- changes: jobs
update jobs set cancel_requested_at = :at, cancel_requested_by = :by
where id = :id and status = 'running' and cancel_requested_at is null

-- name: runs_by_job
select job_id, started_at, worker_id, params_snapshot, status, exit_code, error, artifacts, finished_at
from runs where job_id in $IDS(:ids)

-- name: evidence_by_job
select job_id, kind, document from evidence where job_id in $IDS(:ids) order by at

-- name: keep_results
-- changes: results
insert into results (job_id, value) values (:job_id, :value) on conflict (job_id) do nothing

-- name: results
select job_id, value from results where job_id in $IDS(:ids)

-- name: keep_progress
-- changes: progress
insert into progress (job_id, fraction, told, at) values (:job_id, :fraction, :told, :at)
on conflict (job_id) do update set fraction = excluded.fraction, told = excluded.told,
  at = excluded.at

-- name: progress
select job_id, fraction, told from progress where job_id in $IDS(:ids)

-- name: jobs_of_chains (hot)
select $JOB from jobs where $CHAIN(jobs., in $IDS(:chains)) order by id

-- name: reset_jobs (hot)
-- changes: jobs
-- A rewind puts a waiting job back to the start.
update jobs set status = :status, stage = 'woken', wait_kind = null, wait_detail = null,
  wake_at = null, checked_at = null, waited_on = '[]', not_before = :not_before,
  launch_failures = 0, launch_wait = null, last_failure = null, retries_used = 0, approval = :approval
where id = :id and stage is not null

-- name: topics_of (hot)
select topic from waits where job_id = :job_id

-- name: end_waiting (hot)
-- changes: jobs
-- A job ends without having run: blocked, cancelled or skipped.
update jobs set status = :status, reason = :reason, finished_at = :finished_at, stage = null,
  wake_at = null, checked_at = null, wait_kind = :wait_kind, wait_detail = :wait_detail,
  waited_on = :waited_on
where id = :id and stage is not null

-- name: change_job
-- changes: jobs
update jobs set name = :name, slug = :slug, labels = :labels, priority = :priority, level = :level,
  position = :position, params = :params
where id = :id and stage is not null

-- name: fail_unreadable (hot)
-- changes: jobs
update jobs set status = 'failed', reason = :reason, started_at = :at, finished_at = :at, stage = null,
  wake_at = null, checked_at = null
where id = :id and stage is not null

-- name: add_failed_run
-- changes: runs
insert into runs (job_id, started_at, worker_id, params_snapshot, status, exit_code, error, artifacts,
  finished_at)
values (:job_id, :at, :worker_id, '{}', 'FAILED', 1, :error, '[]', :at)

-- name: chain_number (hot)
select chain from jobs where id = :job_id
