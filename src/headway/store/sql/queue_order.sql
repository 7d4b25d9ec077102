-- name: stand_before (hot)
-- Who waits in a level up to a place in it, the nearest first; without the one that is to be put there.
select id, position, created_at from in_line
where level = :level and id <> :without and (position, created_at, id) <= (:position, :created_at, :id)
order by position desc, created_at desc, id desc limit :limit

-- name: stand_after (hot)
-- Who waits after it.
select id, position, created_at from in_line
where level = :level and id <> :without and (position, created_at, id) > (:position, :created_at, :id)
order by position, created_at, id limit :limit

-- name: nth_of_level (hot)
-- The one that so many others of the level stand before.
select id, position, created_at from in_line where level = :level and id <> :without
order by position, created_at, id limit 1 offset :others

-- name: place_jobs (hot)
-- changes: jobs (takes away)
-- These stand elsewhere from now on.
update jobs set level = given.level, position = given.position
from $ROWS(:rows, id bigint, level bigint, position bigint)
where jobs.id = given.id $EACH(jobs.id, :ids) and jobs.finished_at is null

-- name: stand_ahead (hot)
-- changes: marks
-- New jobs stand after this position, too.
update marks set value = given.ahead + :gap
from (select :position - :gap * (case
    when value > (select coalesce(max(id), 0) from jobs) then value
    else (select max(id) + 1 from jobs) end) as ahead from marks where name = 'next_job_id') as given
where name = 'positions_ahead' and value <= given.ahead

-- name: place_waits (hot)
-- changes: waits
-- And so do the copies of their places, by which waiters are found.
update waits set level = given.level, position = given.position
from $ROWS(:rows, id bigint, level bigint, position bigint)
where waits.job_id = given.id $EACH(waits.job_id, :ids)

-- name: in_dispatch_order
-- All that have not ended, with the time from which their chains have waited.
select jobs.id, jobs.priority, coalesce(first.created_at, jobs.created_at), jobs.level, jobs.position
from jobs left join jobs first on first.id = jobs.chain
where jobs.id in (select id from active)
order by jobs.level desc, jobs.position, jobs.created_at, jobs.id

-- name: locks_waited_for
-- Only what is parked under a lock has a mode.
select distinct topic from waits where mode is not null

-- name: queue_ids
select id from in_line order by level desc, position, created_at, id limit :limit

-- name: queue
-- What waits, in the order of dispatch.
select $JOB from jobs where id in (
  select id from in_line order by level desc, position, created_at, id limit :limit)
order by level desc, position, created_at, id limit :limit
