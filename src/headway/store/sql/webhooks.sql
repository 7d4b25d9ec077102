-- Webhooks: endpoints, the URLs of jobs, and deliveries.

-- name: all_endpoints
select $ENDPOINT from endpoints order by id

-- name: endpoint_named
select $ENDPOINT from endpoints where name = :name

-- name: endpoint_by_id
select $ENDPOINT from endpoints where id = :id

-- name: take_endpoint_id
-- changes: marks
update marks set value = value + 1 where name = 'next_endpoint_id' returning value - 1

-- name: add_endpoint
-- changes: endpoints
insert into endpoints ($ENDPOINT)
values (:id, :name, :url, :types, :schedule, :state, :reason, :since, :fingerprint, :old_fingerprint,
  :overlap_until, :holders, :failures, :failing_since, :held_until, :created_at, :created_by, :changed_at)

-- name: change_endpoint
-- changes: endpoints
update endpoints set state = :state, reason = :reason, since = :since, fingerprint = :fingerprint,
  old_fingerprint = :old_fingerprint, overlap_until = :overlap_until, holders = :holders,
  failures = :failures, failing_since = :failing_since, held_until = :held_until, changed_at = :changed_at
where id = :id

-- name: remove_endpoint
-- changes: endpoints
delete from endpoints where id = :id

-- name: remove_deliveries_of_endpoint
-- changes: deliveries
delete from deliveries where endpoint = :id

-- name: begin_webhooks
-- changes: marks
-- From the next event on somebody is to be told. The newest event so far is the last that nobody was told.
update marks set value = (select coalesce(max(seq), 0) from events)
where name = 'webhook_cursor' and value < 0

-- name: end_webhooks
-- changes: marks
-- Nobody is to be told any more, if that is so.
update marks set value = -1
where name = 'webhook_cursor' and value >= 0
  and not exists (select 1 from endpoints where id > 0 and state <> 'disabled')
  and not exists (select 1 from job_webhooks)
  and not exists (select 1 from deliveries where state = 'pending')

-- name: move_webhook_cursor
-- changes: marks
-- Not if another courier has moved it meanwhile.
update marks set value = :to where name = 'webhook_cursor' and value = :at

-- name: webhook_cursor
select value from marks where name = 'webhook_cursor'

-- name: add_job_webhooks
-- changes: job_webhooks
insert into job_webhooks (chain, url, types) values (:chain, :url, :types) on conflict do nothing

-- name: any_job_webhooks
select 1 from job_webhooks limit 1

-- name: job_webhooks_of
select chain, url, types from job_webhooks where chain in $IDS(:chains) order by chain, url

-- name: close_job_webhooks
-- changes: job_webhooks
-- Of these chains those that are over, with no end beyond the cursor.
delete from job_webhooks where chain in $IDS(:chains)
  and chain not in (select jobs.chain from jobs where $CHAIN(jobs., in $IDS(:chains))
    and (finished_at is null or exists (select 1 from events where events.job_id = jobs.id
      and events.apart is null and events.seq > :cursor and events.kind = jobs.status)))

-- name: remove_job_webhooks
-- changes: job_webhooks
delete from job_webhooks where chain in $IDS(:ids)

-- name: remove_deliveries_of_jobs
-- changes: deliveries
-- Of jobs' own URLs; what endpoints got is kept as long as all that endpoints get.
delete from deliveries where chain in $IDS(:ids) and endpoint = 0 and state <> 'pending'

-- name: chains_beyond_cursor (hot)
-- Those with an event that is beyond the cursor, if they ended after this instant.
select jobs.chain, min(jobs.id) from jobs
where $CHAIN(jobs., in $IDS(:chains)) and jobs.finished_at > :after
  and exists (select 1 from events where events.job_id = jobs.id and events.apart is null
    and events.seq > :cursor)
group by jobs.chain

-- name: add_deliveries
-- changes: deliveries
insert into deliveries (id, endpoint, receiver, url, type, seq, job_id, chain, state, tries, due_at, created_at,
  waiting_since, body)
values (:id, :endpoint, :receiver, :url, :type, :seq, :job_id, :chain, 'pending', 0, :at, :at, :at, :body)
on conflict do nothing

-- name: receivers_waiting
-- Each receiver with something pending, and when its first is due; each receiver is found by a seek.
with recursive receivers (receiver) as (
  select min(receiver) from deliveries where state = 'pending'
  union all
  select (select min(deliveries.receiver) from deliveries
          where state = 'pending' and deliveries.receiver > receivers.receiver)
  from receivers where receiver is not null
)
select receiver, (select min(due_at) from deliveries where state = 'pending' and deliveries.receiver = receivers.receiver)
from receivers where receiver is not null

-- name: lease_deliveries
-- changes: deliveries
update deliveries set lease = :lease, due_at = :until
where id in (select id from deliveries where state = 'pending' and receiver = :receiver and due_at <= :now
             order by due_at limit :limit)
returning $DELIVERY, body

-- name: record_delivered
-- changes: deliveries
update deliveries set state = 'delivered', tries = tries + 1, lease = null, tried_at = :at,
  status_code = :status_code, error = null, ended_at = :at
where id = :id and lease = :lease

-- name: record_failure
-- changes: deliveries
update deliveries set state = :state, tries = tries + 1, due_at = :due_at, lease = null, tried_at = :at,
  status_code = :status_code, error = :error, ended_at = :ended_at
where id = :id and lease = :lease

-- name: give_back_deliveries
-- changes: deliveries
-- They were leased and not sent.
update deliveries set due_at = :at, lease = null where id = :id and lease = :lease

-- name: fail_deliveries_of_endpoint
-- changes: deliveries
update deliveries set state = 'failed', lease = null, error = :error, ended_at = :at
where state = 'pending' and receiver = :receiver

-- name: fail_old_deliveries
-- changes: deliveries
-- What has waited for so long that nobody can want it any more. It was made before it began to wait: by that it is found.
update deliveries set state = 'failed', lease = null, error = :error, ended_at = :at
where state = 'pending' and created_at < :before and waiting_since < :before returning $DELIVERY

-- name: forget_deliveries
-- changes: deliveries
delete from deliveries where id in (
  select id from deliveries where state = :state and created_at < :before and ended_at < :before
  order by created_at limit :most)

-- name: replay_delivery
-- changes: deliveries
update deliveries set state = 'pending', tries = 0, due_at = :at, waiting_since = :at, lease = null, ended_at = null
where id = :id and state <> 'pending'

-- name: replay_failed
-- changes: deliveries
-- Not to those that get nothing before they are resumed.
update deliveries set state = 'pending', tries = 0, due_at = :at, waiting_since = :at, lease = null, ended_at = null
where state = 'failed' and created_at >= :since
  and endpoint not in (select id from endpoints where state = 'disabled')

-- name: delivery
select $DELIVERY, body from deliveries where id = :id

-- name: newest_deliveries
select $DELIVERY from deliveries where state = :state and created_at >= :since
order by created_at desc, id desc limit :limit

-- name: deliveries_of_chain
select $DELIVERY from deliveries where chain = :chain and created_at >= :since
order by created_at desc, id desc

-- name: pending_deliveries
-- Of each endpoint how many are pending, and since when the first of them waits.
select endpoint, count(*), min(waiting_since), min(created_at) from deliveries where state = 'pending'
group by endpoint

-- name: ended_deliveries
-- Of each endpoint how many ended after this instant, in which state, and when the last of them did. None that
-- was made before the other instant did.
select endpoint, state, count(*), max(ended_at) from deliveries
where state in ('delivered', 'failed') and created_at >= :made_since and ended_at > :after
group by endpoint, state

-- name: count_deliveries
select endpoint, state, count(*) from deliveries group by endpoint, state
