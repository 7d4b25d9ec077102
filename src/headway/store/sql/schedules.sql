-- name: take_schedule_id
-- changes: marks
update marks set value = value + 1 where name = 'next_schedule_id' returning value - 1

-- name: put_schedule
-- changes: schedules
insert into schedules (id, name, document, enabled, version, host_id, created_at, created_by, changed_at,
  next_slot, next_fire_at, looked_at, zones, last_slot, last_job, forgotten)
values (:id, :name, :document, :enabled, :version, :host_id, :created_at, :created_by, :changed_at,
  :next_slot, :next_fire_at, :looked_at, :zones, :last_slot, :last_job, :forgotten)
on conflict (id) do update set name = excluded.name, document = excluded.document,
  enabled = excluded.enabled, version = excluded.version, host_id = excluded.host_id,
  changed_at = excluded.changed_at, next_slot = excluded.next_slot,
  next_fire_at = excluded.next_fire_at, looked_at = excluded.looked_at, zones = excluded.zones

-- name: schedules_by_id
select $SCHEDULE from schedules where id in $IDS(:ids)

-- name: schedule_named
select $SCHEDULE from schedules where name = :name

-- name: all_schedules
select $SCHEDULE from schedules order by id

-- name: due_schedules (hot)
-- What is to fire by now, the longest due first.
select $SCHEDULE from schedules
where next_fire_at is not null and next_fire_at <= :now
order by next_fire_at, id limit :limit

-- name: schedules_to_review
-- Those whose next slot was found with other time zones, or at a time that has yet to come.
select $SCHEDULE from schedules
where id > :after and enabled = 1 and (zones <> :zones or looked_at > :now)
order by id limit :limit

-- name: move_schedules (hot)
-- changes: schedules
-- How far it has come; not if it was changed meanwhile.
update schedules set changed_at = :changed_at, next_slot = :next_slot, next_fire_at = :next_fire_at,
  looked_at = :looked_at, zones = :zones, last_slot = :last_slot, last_job = :last_job
where id = :id and version = :version

-- name: remove_schedule
-- changes: schedules
delete from schedules where id = :id

-- name: remove_firings
-- changes: firings
delete from firings where schedule_id = :schedule_id

-- name: next_fire (hot)
select min(next_fire_at) from schedules where next_fire_at is not null

-- name: active_of_schedules (hot)
-- The jobs of these that have not ended, the oldest first, each with its workflow run. A run whose loops or fans a step
-- still has to look at may go on, also if none of its jobs is active.
select schedule_id, id, status, (select nodes.run from workflow_nodes nodes where nodes.chain = jobs.chain) from jobs
where schedule_id in $TEXTS(:schedules) and schedule_id is not null and finished_at is null
union all
select jobs.schedule_id, jobs.id, 'queued', workflow_runs.id
from workflow_runs join workflow_nodes nodes on nodes.run = workflow_runs.id join jobs on jobs.id = nodes.chain
where workflow_runs.unsettled = 1 and jobs.schedule_id in $TEXTS(:schedules)
order by 1, 2

-- name: fired_ahead (hot)
-- The first slot that fired of those that are yet to come: a clock went back.
select schedule_id, min(slot) from firings
where schedule_id in $IDS(:ids) and outcome = 'fired'
  and slot >= (select next_slot from schedules where id = firings.schedule_id)
group by schedule_id

-- name: last_firings (hot)
-- The newest record of each of those that are not yet to come.
select $FIRING from firings
where schedule_id in $IDS(:ids)
  and slot = (select max(known.slot) from firings as known where known.schedule_id = firings.schedule_id
              and known.slot < (select next_slot from schedules where id = firings.schedule_id))

-- name: firings_of
select $FIRING from firings where schedule_id = :schedule_id order by slot desc limit :limit

-- name: add_firings (hot)
-- changes: firings
insert into firings (schedule_id, slot, last_slot, slots, outcome, reason, job_id, at)
values (:schedule_id, :slot, :last_slot, :slots, :outcome, :reason, :job_id, :at)

-- name: grow_firings (hot)
-- changes: firings
update firings set last_slot = :last_slot, slots = :slots, at = :at
where schedule_id = :schedule_id and slot = :slot and outcome = 'skipped'

-- name: skipped_ahead
select $FIRING from firings
where schedule_id = :schedule_id and outcome = 'skipped' and last_slot > :after order by slot

-- name: take_back_skipped
-- changes: firings
delete from firings where schedule_id = :schedule_id and outcome = 'skipped' and last_slot > :after

-- name: missed_of_schedules
-- How many slots were skipped as far as it is kept, and the newest record of that.
select firings.schedule_id, found.slots, firings.last_slot, firings.reason from firings
join (select schedule_id, cast(sum(slots) as bigint) as slots, max(slot) as slot from firings
      where outcome = 'skipped' and schedule_id in $IDS(:ids) group by schedule_id) as found
  on found.schedule_id = firings.schedule_id and found.slot = firings.slot

-- name: schedules_after
select id from schedules where id > :after order by id limit :limit

-- name: oldest_kept
-- Of the records of a schedule the first of the newest so many.
select slot from firings where schedule_id = :schedule_id order by slot desc limit 1 offset :keep

-- name: last_of_old
-- The newest record that is too old to be kept, or that too many came after.
select max(last_slot) from firings
where schedule_id = :schedule_id and (at < :before or slot <= :until)
  and slot < (select coalesce(next_slot, 9223372036854775807) from schedules where id = :schedule_id)

-- name: forget_firings
-- changes: firings
delete from firings where schedule_id = :schedule_id and last_slot <= :until

-- name: note_forgotten
-- changes: schedules
update schedules set forgotten = :until where id = :id and coalesce(forgotten, 0) < :until
