-- name: jobs_file
select digest, read_at, trouble, document, loaded_at, poll_trouble, polled_at from jobs_files
where host_id = :host_id

-- name: put_jobs_file
-- changes: jobs_files
insert into jobs_files (host_id, digest, read_at, trouble, document, loaded_at)
values (:host_id, :digest, :read_at, :trouble, :document, :loaded_at)
on conflict (host_id) do update set digest = excluded.digest, read_at = excluded.read_at,
  trouble = excluded.trouble, document = excluded.document, loaded_at = excluded.loaded_at

-- name: note_poll
-- changes: jobs_files
update jobs_files set poll_trouble = :trouble, polled_at = :at where host_id = :host_id

-- name: entries_of_host
select name, last_job, last_end_at, last_status, next_at, held, held_at, gone_at from entries
where host_id = :host_id order by name

-- name: put_entries
-- changes: entries
-- What its function keeps is not among this.
insert into entries
  (host_id, name, last_job, last_end_at, last_status, next_at, held, held_at, gone_at)
values
  (:host_id, :name, :last_job, :last_end_at, :last_status, :next_at, :held, :held_at, :gone_at)
on conflict (host_id, name) do update set last_job = excluded.last_job,
  last_end_at = excluded.last_end_at, last_status = excluded.last_status,
  next_at = excluded.next_at, held = excluded.held, held_at = excluded.held_at,
  gone_at = excluded.gone_at

-- name: forget_entries
-- changes: entries
-- A job that has not ended may still want what its function keeps.
delete from entries where host_id = :host_id and gone_at < :before and not exists (
  select 1 from jobs
  where jobs.schedule_id = 'jobs.yaml:' || entries.name and jobs.schedule_id is not null
    and jobs.finished_at is null
)

-- name: entry_state
select state from entries where host_id = :host_id and name = :name

-- name: keep_entry_state
-- changes: entries
insert into entries (host_id, name, state) values (:host_id, :name, :state)
on conflict (host_id, name) do update set state = excluded.state

-- name: active_made_by (hot)
select $JOB from jobs
where schedule_id in $TEXTS(:makers) and schedule_id is not null and finished_at is null

-- name: other_work
-- Any job that has not ended and that no entry of a jobs file made.
select 1 from jobs where id in (select id from active)
  and (schedule_id is null or substr(schedule_id, 1, 10) <> 'jobs.yaml:') limit 1

-- name: running_of_type
select 1 from claims join jobs on jobs.id = claims.job_id
where claims.state = 'live' and jobs.type = :type limit 1
