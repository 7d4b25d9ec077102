-- Jobs that are alike on PostgreSQL, with their places and their events in one statement.

-- name: add_alike_at_once
-- What next_places, add_alike and tell_alike say. It answers the first id; nothing if an ageing is set.
with place as (
  select case when value > (select coalesce(max(id), 0) from jobs) then value
      else (select max(id) + 1 from jobs) end as first,
    (select value from marks where name = 'positions_ahead') as ahead,
    coalesce(:at::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) as at
  from marks where name = 'next_job_id'
    and not exists (select 1 from settings where key = 'scheduler.ageing')
), given as materialized (
  select * from unnest(:given_place::bigint[], :given_params::text[]) as each (place, params)
), added as (
  insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
    after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
    launch_failures, stage, waited_on, queue, level)
  select place.first + given.place, :name, :type, 'queued', :priority,
    place.ahead + :gap * (place.first + given.place), given.params, place.at, place.first + given.place, :slug, :labels,
    '[]', '[]', :retry, 1, 0, :env_digest, '', :on_finish, :submitted_by, 0, :stage, '[]', :queue, :priority
  from place, given
), told as (
  insert into events (at, actor, kind, job_id, data)
  select place.at, :submitted_by, 'submitted', place.first + given.place, :told from place, given
)
select set_config('headway.answer', first::text, true)::bigint from place

-- name: add_one_alike
-- The same of a single job, as a whole transaction with its trace. What differs from one job of a model to
-- the next stands first; then where it is to stand if the last commit of all is the one that is given.
select headway_submit(:token, :params, :at, :last, :id, :ahead, :space, :key, :busy, :traces, :last_word, :gap, :name, :type,
  :priority, :slug, :labels, :retry, :env_digest, :on_finish, :submitted_by, :stage, :queue, :told)

-- name: suppose_place
-- Fails unless the next job gets this place, no ageing is set, and all these jobs are the first ones of
-- their chains, none of which has ended.
select cast(case
  when (select greatest(value, (select coalesce(max(id), 0) + 1 from jobs)) from marks where name = 'next_job_id') = :first
    and (select value from marks where name = 'positions_ahead') = :ahead
    and not exists (select 1 from settings where key = 'scheduler.ageing')
    and :count = (select count(*) from jobs declared join jobs last on last.id = $LAST(declared.chain)
      where declared.id in $IDS(:ids) and declared.chain = declared.id and last.finished_at is null)
  then '1' else 'headway: others have written; look again' end as bigint)
