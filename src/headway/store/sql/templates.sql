-- name: templates_by_name
select name, document, created_at, created_by, archived_at from templates
where name in $TEXTS(:names)

-- name: all_templates
select name, document, created_at, created_by, archived_at from templates order by name

-- name: put_template
insert into templates (name, document, created_at, created_by)
values (:name, :document, :created_at, :created_by)
on conflict (name) do update set document = excluded.document, created_at = excluded.created_at,
  created_by = excluded.created_by, archived_at = null

-- name: archive_template
update templates set archived_at = :at where name = :name and archived_at is null

-- name: open_breakers
select host_id, kind, cause, failures, probe_at, opened_at from breakers order by opened_at, host_id

-- name: count_struck
select count(*) from jobs
where launch_wait is not null and finished_at is null and stage is not null

-- name: struck_jobs
select $JOB from jobs
where launch_wait is not null and finished_at is null and stage is not null
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
-- The failed launch that breaks a job's circuit, counted while its claim is still to be settled.
update jobs set launch_failures = :failures, last_failure = :cause
where id = :job_id and status = 'running' and exists (
  select 1 from claims where job_id = :job_id and token = :token and state = 'live')

-- name: cool_down
-- A job that goes on with a chain whose last one could not be launched waits for that reason.
update jobs set launch_wait = :launch_wait, last_failure = :last_failure
where id = :job_id and finished_at is null
