-- name: take_ids (hot)
-- Reserve :count consecutive job ids and say the first of them.
update marks set value = value + :count where name = 'next_job_id' returning value - :count

-- name: take_places (hot)
-- The same, and the last position among active jobs of this priority.
update marks set value = value + :count where name = 'next_job_id'
returning value - :count,
  (select max(position) from jobs where priority = :priority and finished_at is null)

-- name: add_jobs
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
  after_ids, locks, retry, retry_of, attempt, retries_used, not_before, env_digest, idempotency_key,
  spec_digest, on_finish, submitted_by, launch_failures, stage, wait_kind, wait_detail, wake_at,
  checked_at, waited_on, queue, gates, approval)
values (:id, :name, :type, :status, :priority, :position, :params, :created_at, :chain, :slug, :labels,
  :after_ids, :locks, :retry, :retry_of, :attempt, :retries_used, :not_before, :env_digest,
  :idempotency_key, :spec_digest, :on_finish, :submitted_by, 0, :stage, :wait_kind, :wait_detail,
  :wake_at, :checked_at, :waited_on, :queue, :gates, :approval)

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
join jobs last on last.id = (select max(id) from jobs each where each.chain = declared.chain)
where declared.id = :declared

-- name: add_new_edges
-- To jobs that were added along with this one.
insert into edges (job_id, ord, declared, chain, mark)
values (:job_id, :ord, :declared, :chain, 'pending')

-- name: copy_edges
-- A retry waits for what its predecessor in the chain waited for; what was satisfied stays so.
insert into edges (job_id, ord, declared, chain, mark)
select :to_job, ord, declared, chain, mark from edges where job_id = :from_job

-- name: last_position (hot)
select max(position) from jobs where priority = :priority and finished_at is null

-- name: jobs_by_id (hot)
select $JOB from jobs where id in $IDS(:ids)

-- name: job_by_key (hot)
select $JOB from jobs where idempotency_key = :key

-- name: last_in_chain (hot)
select $JOB from jobs where chain = :chain order by id desc limit 1

-- name: chain_of (hot)
select $JOB from jobs where chain = :chain order by id

-- name: active_jobs
select $JOB from jobs where finished_at is null order by created_at, id

-- name: finished_jobs
-- The newest :limit jobs that ended since :since.
select $JOB from jobs where finished_at >= :since order by finished_at desc limit :limit

-- name: count_active
select status, count(*) from jobs where finished_at is null group by status

-- name: count_finished
select status, count(*) from jobs where finished_at >= :since group by status

-- name: any_active (hot)
select 1 from jobs where finished_at is null limit 1

-- name: dependents
select job_id from edges where declared = :job_id or chain = :job_id

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
