-- The next id is the one after the last job's, unless the mark is beyond it: it is raised when ids are
-- taken for jobs that are still to come, and when jobs go. So a plain submit does not write it.

-- name: take_ids (hot)
-- Reserve :count consecutive job ids and say the first of them.
update marks set value = :count + case
    when value > (select coalesce(max(id), 0) from jobs) then value
    else (select max(id) + 1 from jobs) end
where name = 'next_job_id' returning value - :count

-- name: add_jobs
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
  after_ids, locks, retry, retry_of, attempt, retries_used, not_before, env_digest, idempotency_key,
  spec_digest, on_finish, submitted_by, launch_failures, stage, wait_kind, wait_detail, wake_at,
  checked_at, waited_on, queue, gates, approval, level, group_id, sequence_number, subject, target,
  template_id, quota, schedule_id)
values (:id, :name, :type, :status, :priority, :position, :params, :created_at, :chain, :slug, :labels,
  :after_ids, :locks, :retry, :retry_of, :attempt, :retries_used, :not_before, :env_digest,
  :idempotency_key, :spec_digest, :on_finish, :submitted_by, 0, :stage, :wait_kind, :wait_detail,
  :wake_at, :checked_at, :waited_on, :queue, :gates, :approval, :level, :group_id, :sequence_number,
  :subject, :target, :template_id, :quota, :schedule_id)

-- name: next_places (hot)
-- The id that the first of new jobs would get, how much further than that new jobs stand, and the ageing
-- that is set.
select case when value > (select coalesce(max(id), 0) from jobs) then value
    else (select max(id) + 1 from jobs) end,
  (select value from marks where name = 'positions_ahead'),
  (select settings.value from settings where key = 'scheduler.ageing')
from marks where name = 'next_job_id'

-- name: add_alike
-- Jobs that differ in nothing but their parameters, each with the id and the position of its place.
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
  after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
  launch_failures, stage, waited_on, queue, level)
select :first + place, :name, :type, 'queued', :priority, :position + :gap * place, given.params, :at,
  :first + place, :slug, :labels, '[]', '[]', :retry, 1, 0, :env_digest, '', :on_finish, :submitted_by, 0, :stage,
  '[]', :queue, :priority
from $LISTS(:rows, place bigint, params text)

-- name: tell_alike
-- The event of each of the jobs from :first on, which have one name.
insert into events (at, actor, kind, job_id, data)
select created_at, submitted_by, 'submitted', id, :data from jobs
where id >= :first and id < :first + :count order by id

-- name: add_edges
-- The mark is what the predecessor's chain shows now; later its end changes it.
insert into edges (job_id, ord, declared, chain, mark)
select :job_id, :ord, :declared, declared.chain,
  case
    when last.status = 'succeeded' then 'satisfied'
    when last.finished_at is null then 'pending'
    else 'failed'
  end
from jobs declared
join jobs last on last.id = $LAST(declared.chain)
where declared.id = :declared

-- name: add_new_edges
-- To jobs that were added along with this one.
insert into edges (job_id, ord, declared, chain, mark)
values (:job_id, :ord, :declared, :chain, 'pending')

-- name: copy_edges
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

-- name: last_in_chain (hot)
select $JOB from jobs where id = $LAST(:chain)

-- name: chain_of (hot)
select $JOB from jobs where $CHAIN(jobs., = :chain) order by id

-- name: active_jobs
select $JOB from jobs where id in (select id from active) order by created_at, id

-- name: finished_jobs
-- The newest :limit jobs that ended since :since.
select $JOB from jobs where finished_at >= :since order by finished_at desc limit :limit

-- name: count_active
select status, count(*) from jobs where id in (select id from active) group by status

-- name: count_finished
select status, count(*) from jobs where finished_at >= :since group by status

-- name: any_active (hot)
select 1 from active limit 1

-- name: find_jobs
-- The newest of those that match, before a given place in the order. What a pattern lets through is
-- looked at again; none is left out that should not be.
select $JOB from jobs where id in (
  select id from active
  union all
  select id from jobs where finished_at >= :ended_since)
  and status in $TEXTS(:statuses) and created_at >= :created_since
  and (:every_group = 1 or group_id in $IDS(:groups))
  and name like :name escape '\' and labels like :label escape '\'
  and (created_at < :before_at or (created_at = :before_at and id < :before_id))
order by created_at desc, id desc limit :limit

-- name: outlines_shown
-- What a schedule shows unless told otherwise: active jobs, blocked ones that nobody retried, and the
-- ends of failed chains that hold one of those back.
with shown(id) as (
  select id from active
  union all
  select id from jobs where (status = 'blocked_by_dependency' or status = 'blocked_by_approval')
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
     and not exists (select 1 from jobs later where later.retry_of = jobs.id))

-- name: env_digests_in_use
-- Of active jobs, and of those that ended since :since.
select env_digest from jobs where finished_at is null and env_digest is not null
union
select env_digest from jobs where finished_at >= :since and env_digest is not null

-- name: request_cancel (hot)
update jobs set cancel_requested_at = :at, cancel_requested_by = :by
where id = :id and status = 'running' and cancel_requested_at is null

-- name: runs_by_job
select job_id, started_at, worker_id, params_snapshot, status, exit_code, error, artifacts, finished_at
from runs where job_id in $IDS(:ids)

-- name: evidence_by_job
select job_id, kind, document from evidence where job_id in $IDS(:ids) order by at
