-- name: know_tasks
insert into tasks_known (host_id, names, trouble, at) values (:host_id, :names, :trouble, :at)
on conflict (host_id) do update set names = excluded.names, trouble = excluded.trouble,
  at = excluded.at

-- name: tasks_known
select host_id, names, trouble from tasks_known

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
