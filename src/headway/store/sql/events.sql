-- name: add_events
-- changes: events
insert into events (at, actor, kind, job_id, data) values (:at, :actor, :kind, :job_id, :data)

-- name: events_of_job
select seq, at, actor, kind, job_id, data from events where job_id = :job_id and apart is null
union all
select seq, at, actor, kind, job_id, data from events
where seq = (select first_event from jobs where id = :job_id)
order by seq

-- name: events_since
select seq, at, actor, kind, job_id, data from events where seq > :seq order by seq limit :limit

-- name: last_event
select max(seq) from events
