-- name: know_tasks
-- changes: tasks_known
insert into tasks_known (host_id, names, trouble, at) values (:host_id, :names, :trouble, :at)
on conflict (host_id) do update set names = excluded.names, trouble = excluded.trouble,
  at = excluded.at

-- name: tasks_known
select host_id, names, trouble from tasks_known

-- name: tasks_reported
-- The same, with when it was last said, and whether the last worker of that host has left since.
select host_id, names, trouble, at,
  (select case when workers.ended_at is null then 0 else 1 end from workers
   where workers.host_id = tasks_known.host_id order by workers.started_at desc limit 1)
from tasks_known order by host_id

-- name: open_breaker
-- changes: breakers
insert into breakers (host_id, kind, cause, failures, probe_at, opened_at)
values (:host_id, :kind, :cause, :failures, :probe_at, :at)
on conflict (host_id) do update set kind = excluded.kind, cause = excluded.cause,
  failures = excluded.failures, probe_at = excluded.probe_at

-- name: close_breaker (hot)
-- changes: breakers
delete from breakers where host_id = :host_id

-- name: close_all_breakers
-- changes: breakers
delete from breakers

-- name: reset_strikes
-- changes: jobs
update jobs set launch_failures = 0, not_before = null, launch_wait = null, stage = 'woken',
  wake_at = null, checked_at = null
where finished_at is null and launch_wait is not null and stage is not null

-- name: add_worker
-- changes: workers
insert into workers (id, host_id, home, boot_id, pid, mode, started_at)
values (:id, :host_id, :home, :boot_id, :pid, :mode, :started_at)

-- name: worker_settled
-- changes: workers
update workers set settled_at = :at where id = :id

-- name: end_worker
-- changes: workers
update workers set ended_at = :at, ending = :ending where id = :id

-- name: recent_workers
select id, pid, mode, started_at, settled_at, ended_at, ending from workers
where host_id = :host_id order by started_at desc limit :limit

-- name: know_host
-- changes: hosts
-- Written only when something is new: every submit says it.
insert into hosts (id, name, home, seen_at) values (:id, :name, :home, :at)
on conflict (id) do update set name = excluded.name, home = excluded.home, seen_at = excluded.seen_at
where hosts.name <> excluded.name or hosts.home <> excluded.home

-- name: hosts
select id, name, home from hosts

-- name: open_breakers
select host_id, kind, cause, failures, probe_at, opened_at from breakers order by opened_at, host_id

-- The stage is not asked for as it stands, so that no database goes by it through all that waits.

-- name: count_struck (hot)
select count(*) from jobs
where launch_wait is not null and finished_at is null and coalesce(stage, '') <> ''

-- name: struck_jobs (hot)
select $JOB from jobs
where launch_wait is not null and finished_at is null and coalesce(stage, '') <> ''
order by id limit :limit

-- name: count_circuit_broken
select count(*) from jobs
where substr(reason, 1, 15) = 'circuit-broken:' and finished_at >= :since
  and not exists (select 1 from jobs again where again.retry_of = jobs.id)

-- name: circuit_broken
select $JOB from jobs
where substr(reason, 1, 15) = 'circuit-broken:' and finished_at >= :since
  and not exists (select 1 from jobs again where again.retry_of = jobs.id)
order by finished_at desc limit :limit

-- name: strike_out
-- changes: jobs
-- The failed launch that breaks a job's circuit, counted while its claim is still to be settled.
update jobs set launch_failures = :failures, last_failure = :cause
where id = :job_id and status = 'running' and exists (
  select 1 from claims where job_id = :job_id and token = :token and state = 'live')

-- name: cool_down
-- changes: jobs
-- A job that goes on with a chain whose last one could not be launched waits for that reason.
update jobs set launch_wait = :launch_wait, last_failure = :last_failure
where id = :job_id and finished_at is null
