-- A submit of one plain job: the turn, the place, the job, its event, the trace of the commit and the
-- notice, in the order and with the meaning that they have as statements of their own, each of which sees
-- what was there when its turn had come. A server prepares it once and hears of it in one message. It says
-- the id and the number of the commit; nothing is done if an ageing is set.
create function headway_submit(
  given_token text, given_params text, given_at bigint, given_space bigint, given_key bigint,
  given_busy text, given_traces bigint, given_last_word text, given_gap bigint, given_name text,
  given_type text, given_priority bigint, given_slug text, given_labels text, given_retry text,
  given_env_digest text, given_on_finish text, given_submitted_by text, given_stage text,
  given_queue text, given_told text
) returns text language plpgsql as $$
declare
  new_id  bigint;
  newest  bigint;
  instant bigint;
  trace   text;
begin
  perform set_config('lock_timeout', given_busy, true),
    pg_advisory_xact_lock(given_space::integer, given_key::integer);
  if exists (select 1 from settings where key = 'scheduler.ageing') then
    return null;
  end if;
  instant := coalesce(given_at, (extract(epoch from clock_timestamp()) * 1000000)::bigint);
  insert into jobs (id, name, type, status, priority, position, params, created_at, chain, slug, labels,
    after_ids, locks, retry, attempt, retries_used, env_digest, spec_digest, on_finish, submitted_by,
    launch_failures, stage, waited_on, queue, level)
  select place.first, given_name, given_type, 'queued', given_priority,
    coalesce((select max(position) from jobs where level = given_priority and finished_at is null), 0)
      + given_gap,
    given_params, instant, place.first, given_slug, given_labels, '[]', '[]', given_retry, 1, 0,
    given_env_digest, '', given_on_finish, given_submitted_by, 0, given_stage, '[]', given_queue,
    given_priority
  from (
    select greatest(value, (select coalesce(max(id), 0) + 1 from jobs)) as first
    from marks where marks.name = 'next_job_id') as place
  returning id into new_id;
  insert into events (at, actor, kind, job_id, data)
  values (instant, given_submitted_by, 'submitted', new_id, given_told);
  trace := given_token || ' ' || new_id;
  update commits set number = number + 1,
    token = case when given_last_word = '' then (number + 1)::text else token end
  where place = -1 returning number into newest;
  if not found then
    newest := 1;
    insert into commits (place, number, token)
    values (-1, 1, case when given_last_word = '' then '1' else '' end);
  end if;
  update commits set number = newest, token = trace where place = mod(newest, given_traces);
  if not found then
    insert into commits (place, number, token) values (mod(newest, given_traces), newest, trace);
  end if;
  perform pg_notify('headway', given_key || ' ' || newest || ' ' || trace || given_last_word);
  return new_id || ' ' || newest;
end $$;

-- The words that a column may have are those of its type. A check of the table is read and planned anew
-- for each statement that writes to it, whichever columns that changes; of a type a server does so once.
-- The rows are looked at when the type gets its check, and none has to be written anew.

create domain headway_job_status as text;
create domain headway_job_stage as text;
create domain headway_run_status as text;
create domain headway_claim_state as text;

drop trigger jobs_params_are_frozen on jobs;
drop trigger runs_terminal_is_final on runs;
drop trigger runs_stay_with_their_job on runs;

alter table jobs drop constraint jobs_status_check, drop constraint jobs_stage_check,
  alter column status type headway_job_status, alter column stage type headway_job_stage;
alter table runs drop constraint runs_status_check, alter column status type headway_run_status;
alter table claims drop constraint claims_of_jobs_state_check,
  alter column state type headway_claim_state;

alter domain headway_job_status add constraint jobs_status_check check (value in (
  'queued', 'waiting_on_deps', 'waiting_on_approval', 'waiting_on_locks', 'running', 'succeeded',
  'failed', 'skipped', 'cancelled', 'blocked_by_dependency', 'blocked_by_approval'));
alter domain headway_job_stage add constraint jobs_stage_check check (value in ('woken', 'ready', 'filed'));
alter domain headway_run_status add constraint runs_status_check
  check (value in ('COMPLETED', 'FAILED', 'SKIPPED'));
alter domain headway_claim_state add constraint claims_state_check
  check (value in ('live', 'ended', 'gone'));

create trigger jobs_params_are_frozen after update of params on jobs for each row
  when (old.status = 'running' and old.params is distinct from new.params)
  execute function headway_refuse('Cannot modify params');

create trigger runs_terminal_is_final after update on runs for each row
  when (old.status is not null)
  execute function headway_refuse('a finished run is final');

create trigger runs_stay_with_their_job before delete on runs for each row
  when (old.status is not null)
  execute function headway_stays_with_its_job('a finished run is final', 'never');
