-- name: parked_under (hot)
-- The first of those that wait for this, in no order.
select $JOB from jobs where id in (
  select job_id from waits where topic = :topic
  order by level desc, position, created_at, job_id limit :limit)

-- name: count_parked
-- How many wait for each limit.
select topic, count(*) from waits where topic > '' and substr(topic, 1, 6) = 'limit:' group by topic

-- name: count_limited
select count(distinct job_id) from waits where topic > '' and substr(topic, 1, 6) = 'limit:'

-- name: newest_starts (hot)
-- The starts that a rate counts, the newest first.
select at from rate_starts where key = :key and at > :since order by at desc limit :most

-- name: add_starts
-- changes: rate_starts
insert into rate_starts (key, at, job_id) values (:key, :at, :job_id)

-- name: forget_start (hot)
-- changes: rate_starts
delete from rate_starts where key = :key and at = :at and job_id = :job_id

-- name: started_keys
select distinct key from rate_starts

-- name: forget_old_starts
-- changes: rate_starts
-- The newest of a key are enough: no rate counts more of them.
delete from rate_starts where key = :key and (at < :before or at < (
  select at from rate_starts as kept where kept.key = :key order by at desc limit 1 offset :most))
