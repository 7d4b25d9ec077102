-- One plain job on SQLite, with its place, in one statement.

-- name: add_one_alike
-- What next_places and add_alike say of a single job; nothing if an ageing is set. What differs from one
-- job of a model to the next stands first.
insert into jobs (params, created_at, id, chain, position, name, type, status, priority, slug, labels,
  after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
  launch_failures, stage, waited_on, queue, level)
select :params, :at, first, first, first * :gap + ahead,
  :name, :type, 'queued', :priority, :slug, :labels, '[]', '[]', :retry, 1, 0, :env_digest, '', :on_finish,
  :submitted_by, 0, :stage, '[]', :queue, :priority
from (select max(value, (select coalesce(max(id), 0) + 1 from jobs)) as first,
    (select value from marks where name = 'positions_ahead') as ahead
  from marks where name = 'next_job_id')
where not exists (select 1 from settings where key = 'scheduler.ageing')
