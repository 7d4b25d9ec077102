-- name: wake_due (hot)
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
-- The head of the queue at the door.
select $JOB from jobs where stage = 'ready' and queue = :queue
order by level desc, position, created_at, id limit :limit

-- name: any_woken (hot)
select 1 from jobs where stage = 'woken' limit 1

-- name: count_at_door
select count(*) from jobs where stage in ('woken', 'ready')

-- name: ahead_in_queue
-- How many jobs stand before this one at the door, and how many in all.
select count(*) filter (where level > :level or (level = :level and (position < :position
  or (position = :position and (created_at < :created_at or (created_at = :created_at and id < :id)))))),
  count(*)
from jobs where stage in ('woken', 'ready')

-- name: wake_topic (hot)
-- All that wait for this are looked at again.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in (select job_id from waits where topic = :topic) and stage <> 'woken'

-- The wakes say `stage <> 'woken'` and not `stage in (...)`: an index on the stage must not tempt the
-- database to walk through all that wait.

-- name: first_waiters (hot)
-- The first in dispatch order of those that wait for this.
select job_id, mode from waits where topic = :topic
order by level desc, position, created_at, job_id limit :limit

-- name: wake_next (hot)
-- The first of them after a given place in the order.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id = (select job_id from waits where topic = :topic and (level < :level
              or (level = :level and (position > :position
              or (position = :position and (created_at > :created_at
              or (created_at = :created_at and job_id > :job_id))))))
            order by level desc, position, created_at, job_id limit 1)
  and stage <> 'woken'

-- name: wake_jobs (hot)
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in $IDS(:ids) and stage <> 'woken'

-- name: wake_chain_borrowers (hot)
-- A slot was lent to these chains: their jobs at the door may borrow it.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where $CHAIN(jobs., in $IDS(:chains)) and stage <> 'woken'

-- name: wake_everything
-- A worker started: it counts as every event, but for who waits for a job that has not ended, or for
-- its turn. That is told by a transaction in the store, and no worker need be there for it.
update jobs set stage = 'woken', wake_at = null, checked_at = null
where stage = 'filed' and wake_at is null and coalesce(wait_kind, '') <> 'group'
  and not exists (select 1 from edges where edges.job_id = jobs.id and edges.mark = 'pending')

-- name: requeue
update jobs set queue = :queue where id in $IDS(:ids)

-- name: stale_waiters (hot)
-- The longest unchecked waiters, for the sweep that finds missed wake-ups.
select $JOB from jobs where queue = :queue and checked_at < :before
order by checked_at limit :limit

-- name: touch_checked (hot)
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

-- name: satisfy_chains (hot)
-- Those that somebody waits for; most chains nobody does.
update edges set mark = 'satisfied' where chain in $IDS(:chains) and mark <> 'satisfied'
returning chain

-- name: fail_chain (hot)
-- The chain ended without success: all that wait for it are told.
update edges set mark = 'failed' where chain = :chain and mark <> 'satisfied'

-- name: reopen_chain (hot)
update edges set mark = 'pending' where chain = :chain and mark = 'failed'

-- name: wake_dependents (hot)
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id in (select job_id from edges where chain = :chain and mark <> 'satisfied')
  and stage <> 'woken'

-- name: lock_holders (hot)
select key, job_id, mode from held_locks where key in $TEXTS(:keys)

-- name: first_reservers (hot)
-- The first waiter of one mode that reserves this key.
select job_id, mode, level, position, created_at from waits
where topic = :topic and mode = :mode and reserves = 1
order by level desc, position, created_at, job_id limit 1

-- name: topics_of (hot)
select topic from waits where job_id = :job_id

-- name: clear_waits (hot)
delete from waits where job_id = :job_id

-- name: add_waits
insert into waits (topic, job_id, mode, reserves, level, position, created_at)
values (:topic, :job_id, :mode, :reserves, :level, :position, :created_at)

-- name: file_job (hot)
update jobs set status = :status, stage = :stage, wait_kind = :wait_kind, wait_detail = :wait_detail,
  wake_at = :wake_at, waited_on = :waited_on, checked_at = :checked_at
where id = :id and stage is not null

-- name: end_waiting (hot)
-- A job ends without having run: blocked, cancelled or skipped.
update jobs set status = :status, reason = :reason, finished_at = :finished_at, stage = null,
  wake_at = null, checked_at = null, wait_kind = :wait_kind, wait_detail = :wait_detail,
  waited_on = :waited_on
where id = :id and stage is not null

-- name: change_job
update jobs set name = :name, slug = :slug, labels = :labels, priority = :priority, level = :level,
  position = :position, params = :params
where id = :id and stage is not null

-- name: fail_unreadable (hot)
update jobs set status = 'failed', reason = :reason, started_at = :at, finished_at = :at, stage = null,
  wake_at = null, checked_at = null
where id = :id and stage is not null

-- name: add_failed_run
insert into runs (job_id, started_at, worker_id, params_snapshot, status, exit_code, error, artifacts,
  finished_at)
values (:job_id, :at, :worker_id, '{}', 'FAILED', 1, :error, '[]', :at)

-- name: chain_number (hot)
select chain from jobs where id = :job_id
