-- name: present_state (hot)
-- All that capacity is counted from, in one question: few rows of small tables. Then which kinds of rows
-- there are at all; the queues with ready jobs, and the limits that are waited for, are found one by one,
-- each by a seek.
with recursive queues (queue) as (
  select min(queue) from jobs where stage = 'ready'
  union all
  select (select min(jobs.queue) from jobs where stage = 'ready' and jobs.queue > queues.queue)
  from queues where queue is not null
), limits (topic) as (
  select min(topic) from waits where topic > '' and substr(topic, 1, 6) = 'limit:'
  union all
  select (select min(waits.topic) from waits
          where waits.topic > limits.topic and substr(waits.topic, 1, 6) = 'limit:')
  from limits where topic is not null
)
select 'setting' as what, key as a, value as b, null as c, null as d from settings
union all select 'pause', actor, reason, cast(at as text), scope from pauses
union all select 'breaker', host_id, kind, cause, cast(failures as text) || ' ' || cast(probe_at as text)
  from breakers
union all select 'mark', name, cast(case
    when name = 'next_job_id' and value <= (select max(id) from jobs) then (select max(id) + 1 from jobs)
    else value end as text), null, null from marks
union all select 'slot', cast(slot as text), cast(job_id as text), cast(borrowed_from as text),
  cast(probe as text) || ' ' || token || ' ' || coalesce(occupies, '') from claims where state = 'live'
union all select 'lending', cast(job_id as text), cast(chain as text), cast(expires_at as text), null
  from lendings
union all select 'reserved', null, null, null, null
  from (select 1 from reservations limit 1) as found
union all select 'ready', queue, null, null, null from queues where queue is not null
union all select 'limit', topic, null, null, null from limits where topic is not null
union all select 'wake', cast(min(wake_at) as text), null, null, null from jobs where wake_at is not null
union all select 'woken', null, null, null, null
  from (select 1 from jobs where stage = 'woken' limit 1) as found
union all select 'cancelling', null, null, null, null
  from (select 1 from jobs where cancel_requested_at is not null and finished_at is null limit 1) as found
union all select 'unproven', null, null, null, null
  from (select 1 from claims where state = 'ended' limit 1) as found
union all select 'held', null, null, null, null
  from (select 1 from held_locks where key >= '' limit 1) as found
union all select 'contended', null, null, null, null
  from (select 1 from waits where topic > '' and mode is not null limit 1) as found
union all select 'products', null, null, null, null
  from (select 1 from produces where artifact > '' limit 1) as found
union all select 'awaited', null, null, null, null
  from (select 1 from edges where mark = 'pending' limit 1) as found

-- name: unset_setting
-- changes: settings
delete from settings where key = :key

-- name: set_setting
-- changes: settings
insert into settings (key, value, updated_at, updated_by) values (:key, :value, :at, :by)
on conflict (key) do update set value = excluded.value, updated_at = excluded.updated_at,
  updated_by = excluded.updated_by

-- name: pause
-- changes: pauses
-- The scope is a host's id, or all of them.
insert into pauses (scope, actor, reason, at) values (:scope, :actor, :reason, :at)
on conflict (scope) do nothing

-- name: resume
-- changes: pauses
delete from pauses

-- name: set_mark (hot)
-- changes: marks (followed)
update marks set value = :value where name = :name

-- name: note_dispatch (hot)
-- changes: marks (followed)
update marks set value = case name when 'last_dispatch_at' then :at else :count end
where name in ('last_dispatch_at', 'last_dispatch_count')

-- name: add_to_mark (hot)
-- changes: marks (followed)
update marks set value = value + :amount where name = :name
