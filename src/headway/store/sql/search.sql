-- A search goes from the newest job down: through all rows, or through those that an index knows. What a
-- pattern lets through is looked at again; none is left out that should not be.

-- name: newest_below (hot)
select max(id) from jobs where id < :below

-- name: find_between
-- Those that match, of all in a range of ids.
select $JOB from jobs where id >= :low and id < :below
  and status in $TEXTS(:statuses) and created_at >= :created_since
  and (finished_at is null or finished_at >= :ended_since)
  and (:every_target = 1 or target in $TEXTS(:targets))
  and name like :name escape '\' and labels like :label escape '\'
order by id desc limit :limit

-- name: find_among
-- Those that match, of these.
select $JOB from jobs where id in $IDS(:ids)
  and status in $TEXTS(:statuses) and created_at >= :created_since
  and (finished_at is null or finished_at >= :ended_since)
  and (:every_target = 1 or target in $TEXTS(:targets))
  and name like :name escape '\' and labels like :label escape '\'
order by id desc

-- name: ids_ended_as (hot)
-- Of those that did not succeed.
select id from jobs where status = :status and status <> 'succeeded' and finished_at is not null
  and id < :below
order by id desc limit :limit

-- The others are not in the order of ids in their indexes. A plus before the id keeps a database from going by
-- that order all the same, through the whole table.

-- name: ids_waiting (hot)
select id from jobs where stage is not null and +id < :below order by +id desc limit :limit

-- name: ids_running (hot)
select job_id from claims where state = 'live' and +job_id < :below order by +job_id desc limit :limit

-- name: ids_ended_since (hot)
select id from jobs where finished_at >= :since and +id < :below order by +id desc limit :limit

-- name: ids_of_groups (hot)
select id from jobs where group_id in $IDS(:groups) and +id < :below order by +id desc limit :limit

-- name: ids_about (hot)
select id from jobs where subject in $TEXTS(:subjects) and +id < :below order by +id desc limit :limit

-- name: ids_of_chains (hot)
select id from jobs where $CHAIN(jobs., in $IDS(:chains)) and +id < :below order by +id desc limit :limit
