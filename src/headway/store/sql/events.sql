-- name: add_events
-- changes: events
insert into events (at, actor, kind, job_id, data) values (:at, :actor, :kind, :job_id, :data)

-- name: events_of_job
select seq, at, actor, kind, job_id, data from events where job_id = :job_id and apart is null
union all
select seq, at, actor, kind, job_id, data from events
where seq = (select first_event from jobs where id = :job_id)
order by seq

-- name: last_changes (hot)
-- Of each of these jobs the number of its newest event that is no wait.
select jobs.id, coalesce(
  (select seq from events where job_id = jobs.id and apart is null and kind <> 'queued'
     and kind <> 'waiting_on_deps' and kind <> 'waiting_on_locks' and kind <> 'waiting_on_approval'
   order by seq desc limit 1),
  jobs.first_event)
from jobs where jobs.id in $IDS(:ids)

-- name: events_since
select seq, at, actor, kind, job_id, data from events where seq > :seq order by seq limit :limit

-- name: events_of_kinds
-- Those of these kinds after one, in their order.
select seq, at, actor, kind, job_id, data from events
where seq > :seq and kind in $TEXTS(:kinds) order by seq limit :limit

-- name: last_event
select max(seq) from events
