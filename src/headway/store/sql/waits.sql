-- name: wake_due (hot)
-- changes: jobs
-- Jobs whose time has come are looked at again.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in (select id from jobs where wake_at <= :now order by wake_at limit :limit)

-- name: next_wake (hot)
select min(wake_at) from jobs where wake_at is not null

-- name: woken (hot)
-- Jobs to look at, in dispatch order. One host's queue at a time: the index gives it in order.
select $JOB from jobs where stage = 'woken' and queue = :queue
order by level desc, position, created_at, id limit :limit

-- name: woken_anywhere (hot)
-- The same of all queues, one after the other: mostly they are few.
select $JOB from jobs where stage = 'woken'
order by queue, level desc, position, created_at, id limit :limit

-- name: ready (hot)
-- The ready jobs at the head of the queue.
select $JOB from jobs where stage = 'ready' and queue = :queue
order by level desc, position, created_at, id limit :limit

-- name: any_woken (hot)
select 1 from jobs where stage = 'woken' limit 1

-- name: ahead_in_queue
-- How many ready jobs stand before this one, and how many there are in all.
select count(*) filter (where level > :level or (level = :level and (position < :position
  or (position = :position and (created_at < :created_at or (created_at = :created_at and id < :id)))))),
  count(*)
from jobs where stage in ('woken', 'ready')

-- name: wake_topics (hot)
-- changes: jobs (wakes)
-- All that wait for one of these are looked at again.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in (select job_id from waits where topic in $TEXTS(:keys)) and stage <> 'woken'

-- The wakes say `stage <> 'woken'` and not `stage in (...)`: an index on the stage must not tempt the
-- database to walk through all that wait.

-- name: first_waiters (hot)
-- The first in dispatch order of those that wait for this.
select job_id, mode from waits where topic = :topic
order by level desc, position, created_at, job_id limit :limit

-- name: wake_next (hot)
-- changes: jobs (wakes)
-- The first of them after a given place in the order.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id = (select job_id from waits where topic = :topic and (level < :level
              or (level = :level and (position > :position
              or (position = :position and (created_at > :created_at
              or (created_at = :created_at and job_id > :job_id))))))
            order by level desc, position, created_at, job_id limit 1)
  and stage <> 'woken'

-- name: wake_jobs (hot)
-- changes: jobs (wakes)
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in $IDS(:ids) and stage <> 'woken'

-- name: wake_chain_borrowers (hot)
-- changes: jobs (wakes)
-- A slot was lent to these chains: their ready jobs may borrow it.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where $CHAIN(jobs., in $IDS(:chains)) and stage <> 'woken'

-- name: wake_everything
-- changes: jobs (wakes)
-- A worker started: it counts as every event, but for who waits for a job that has not ended, or for
-- its turn. That is told by a transaction in the store, and no worker need be there for it.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where stage = 'filed' and wake_at is null and coalesce(wait_kind, '') <> 'group'
  and not exists (select 1 from edges where edges.job_id = jobs.id and edges.mark = 'pending')

-- name: requeue
-- changes: jobs
update jobs set queue = :queue where id in $IDS(:ids)

-- name: stale_waiters (hot)
-- The longest unchecked waiters, for the sweep that finds missed wake-ups.
select $JOB from jobs where queue = :queue and checked_at < :before
order by checked_at limit :limit

-- name: touch_checked (hot)
-- changes: jobs (takes away)
update jobs set checked_at = :at where id in $IDS(:ids) and checked_at is not null

-- name: unmet_edges (hot)
-- The first that failed, and the first that is pending.
select declared, chain from (
  select declared, chain from edges where job_id = :job_id and mark = 'failed' order by ord limit 1
) as failed
union all
select declared, chain from (
  select declared, chain from edges where job_id = :job_id and mark = 'pending' order by ord limit 1
) as pending

-- name: unmet_edges_of_many (hot)
-- The first that failed, and the last that is pending: who waits for very many waits for that.
select declared, chain from (
  select declared, chain from edges where job_id = :job_id and mark = 'failed' order by ord limit 1
) as failed
union all
select declared, chain from (
  select declared, chain from edges where job_id = :job_id and mark = 'pending'
  order by ord desc limit 1
) as pending

-- name: every_unmet_edge
select declared, chain from edges where job_id = :job_id and mark <> 'satisfied' order by ord

-- name: satisfy_chains (hot)
-- changes: edges (takes away)
-- Those that somebody waits for; most chains nobody does.
update edges set mark = 'satisfied' where chain in $IDS(:chains) and mark <> 'satisfied'
returning chain

-- name: fail_chain (hot)
-- changes: edges (takes away)
-- The chain ended without success: all that wait for it are told.
update edges set mark = 'failed' where chain = :chain and mark <> 'satisfied'

-- name: reopen_chain (hot)
-- changes: edges
update edges set mark = 'pending' where chain = :chain and mark = 'failed'

-- name: wake_dependents (hot)
-- changes: jobs (wakes)
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in (select job_id from edges where chain = :chain and mark <> 'satisfied')
  and stage <> 'woken'

-- name: clear_waits (hot)
-- changes: waits
delete from waits where job_id = :job_id

-- name: add_waits
-- changes: waits
insert into waits (topic, job_id, mode, reserves, level, position, created_at)
values (:topic, :job_id, :mode, :reserves, :level, :position, :created_at)

-- name: park_job (hot)
-- changes: jobs
update jobs set status = :status, stage = :stage, wait_kind = :wait_kind, wait_detail = :wait_detail,
  wake_at = :wake_at, waited_on = :waited_on, checked_at = :checked_at
where id = :id and stage is not null

-- name: topics_waited_for (hot)
-- One look at each, however many are parked under it.
select given.topic from $ROWS(:rows, topic text)
where exists (select 1 from waits where waits.topic = given.topic)
