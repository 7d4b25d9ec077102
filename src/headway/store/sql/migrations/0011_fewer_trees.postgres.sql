-- A submit of one plain job as before, but for its position and its first event. Who made the last commit of
-- all knows the place of the next job, and says so.
create function headway_submit(
  given_token text, given_params text, given_at bigint, given_last bigint, given_id bigint,
  given_ahead bigint, given_space bigint, given_key bigint,
  given_busy text, given_traces bigint, given_last_word text, given_gap bigint, given_name text,
  given_type text, given_priority bigint, given_slug text, given_labels text, given_retry text,
  given_env_digest text, given_on_finish text, given_submitted_by text, given_stage text,
  given_queue text, given_told text
) returns text language plpgsql as $$
declare
  new_id  bigint;
  event   bigint;
  ahead   bigint;
  newest  bigint;
  instant bigint;
  trace   text;
begin
  perform set_config('lock_timeout', given_busy, true),
    pg_advisory_xact_lock(given_space::integer, given_key::integer);
  if given_last is null and exists (select 1 from settings where key = 'scheduler.ageing') then
    return null;
  end if;
  update commits set number = number + 1,
    token = case when given_last_word = '' then (number + 1)::text else token end
  where place = -1 returning number into newest;
  if not found then
    newest := 1;
    insert into commits (place, number, token)
    values (-1, 1, case when given_last_word = '' then '1' else '' end);
  end if;
  if newest = given_last + 1 then
    new_id := given_id;
    ahead := given_ahead;
  else
    select greatest(value, (select coalesce(max(id), 0) + 1 from jobs)),
      (select value from marks where marks.name = 'positions_ahead')
    from marks where marks.name = 'next_job_id'
      and not exists (select 1 from settings where key = 'scheduler.ageing') into new_id, ahead;
  end if;
  trace := given_token || ' ' || coalesce(new_id::text, '');
  if new_id is not null then  -- else an ageing was set meanwhile
    instant := coalesce(given_at, (extract(epoch from clock_timestamp()) * 1000000)::bigint);
    insert into events (at, actor, kind, job_id, data, apart)
    values (instant, given_submitted_by, 'submitted', new_id, given_told, 1) returning seq into event;
    -- Of values, not of a query, with which the server takes longer.
    insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
      after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
      launch_failures, stage, waited_on, queue, level, first_event)
    values (new_id, given_name, given_type, 'queued', given_priority, new_id * given_gap + ahead,
      given_params, instant, new_id, given_slug, given_labels, '[]', '[]', given_retry, 1, 0,
      given_env_digest, '', given_on_finish, given_submitted_by, 0, given_stage, '[]', given_queue,
      given_priority, event);
  end if;
  update commits set number = newest, token = trace where place = mod(newest, given_traces);
  if not found then
    insert into commits (place, number, token) values (mod(newest, given_traces), newest, trace);
  end if;
  perform pg_notify('headway', given_key || ' ' || newest || ' ' || trace || given_last_word);
  return new_id || ' ' || newest || ' ' || ahead;
end $$;

-- For those who have it open, and know neither the place of the next job nor that one may be told.
create or replace function headway_submit(
  given_token text, given_params text, given_at bigint, given_space bigint, given_key bigint,
  given_busy text, given_traces bigint, given_last_word text, given_gap bigint, given_name text,
  given_type text, given_priority bigint, given_slug text, given_labels text, given_retry text,
  given_env_digest text, given_on_finish text, given_submitted_by text, given_stage text,
  given_queue text, given_told text
) returns text language plpgsql as $$
begin
  return substring(headway_submit(given_token, given_params, given_at, null, null, null, given_space,
    given_key, given_busy, given_traces, given_last_word, given_gap, given_name, given_type, given_priority,
    given_slug, given_labels, given_retry, given_env_digest, given_on_finish, given_submitted_by, given_stage,
    given_queue, given_told) from '^[0-9]+ [0-9]+');
end $$;

create function headway_take_first_event() returns trigger language plpgsql as $$
begin
  delete from events where seq = old.first_event;
  return null;
end $$;
create trigger jobs_take_their_first_event after delete on jobs for each row
  when (old.first_event is not null) execute function headway_take_first_event();
