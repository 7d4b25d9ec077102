-- name: know_tasks
insert into tasks_known (host_id, names, trouble, at) values (:host_id, :names, :trouble, :at)
on conflict (host_id) do update set names = excluded.names, trouble = excluded.trouble,
  at = excluded.at

-- name: tasks_known
select host_id, names, trouble from tasks_known

-- name: tasks_told
-- The same, with when it was last said, and whether the last worker of that host has left since.
select host_id, names, trouble, at,
  (select case when workers.ended_at is null then 0 else 1 end from workers
   where workers.host_id = tasks_known.host_id order by workers.started_at desc limit 1)
from tasks_known order by host_id

-- name: keep_results
insert into results (job_id, value) values (:job_id, :value) on conflict (job_id) do nothing

-- name: results
select job_id, value from results where job_id in $IDS(:ids)

-- name: keep_progress
insert into progress (job_id, fraction, told, at) values (:job_id, :fraction, :told, :at)
on conflict (job_id) do update set fraction = excluded.fraction, told = excluded.told,
  at = excluded.at

-- name: progress
select job_id, fraction, told from progress where job_id in $IDS(:ids)
