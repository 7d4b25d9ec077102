-- One plain job on SQLite, its place and its event: each with as little around it as can be.

-- name: place_of_one_alike
-- What next_places says, and the number of the event that must follow: the next one, as all get. Nothing if
-- an ageing is set.
select max(value, (select coalesce(max(id), 0) + 1 from jobs)),
  (select value from marks where name = 'positions_ahead'),
  (select coalesce(max(seq), 0) + 1 from events)
from marks where name = 'next_job_id' and not exists (select 1 from settings where key = 'scheduler.ageing')

-- name: add_one_alike
-- changes: jobs
-- What add_alike says of a single job. What differs from one job of a model to the next stands first.
insert into jobs (id, chain, position, first_event, params, created_at, name, type, status, priority, slug,
  labels, after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
  launch_failures, stage, waited_on, queue, level)
values (:id, :id, :position, :event, :params, :at, :name, :type, 'queued', :priority, :slug,
  :labels, '[]', '[]', :retry, 1, 0, :env_digest, '', :on_finish, :submitted_by,
  0, :stage, '[]', :queue, :priority)

-- name: tell_of_one_alike
-- changes: events
insert into events (at, actor, kind, job_id, data, apart)
values (:at, :actor, 'submitted', :job_id, :told, 1)
