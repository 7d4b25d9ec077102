-- The traces of the last commits, in a ring: by its token a transaction whose answer was lost is
-- found to have happened, by the number others are seen to have committed.
create table commits (
  place  bigint primary key,
  number bigint not null,
  token  text not null
);

-- The guards that need a trigger; SQLite spells these differently, so each has its own.

create function headway_refuse() returns trigger language plpgsql as $$
begin
  raise exception 'headway: %', tg_argv[0];
end $$;

create trigger jobs_terminal_is_final before update on jobs for each row
  when (old.status in ('succeeded', 'failed', 'skipped', 'cancelled', 'blocked_by_dependency',
                       'blocked_by_approval'))
  execute function headway_refuse('a terminal job is final');

create trigger jobs_params_are_frozen before update on jobs for each row
  when (old.status = 'running' and old.params is distinct from new.params)
  execute function headway_refuse('Cannot modify params');

create trigger runs_are_audit_records
  before update of job_id, started_at, worker_id, params_snapshot on runs for each row
  execute function headway_refuse('Cannot modify immutable fields of a run');

create trigger runs_terminal_is_final before update on runs for each row
  when (old.status is not null)
  execute function headway_refuse('a finished run is final');

create trigger events_are_append_only before update on events for each row
  execute function headway_refuse('events are append-only');

create function headway_stays_with_its_job() returns trigger language plpgsql as $$
begin
  if exists (select 1 from jobs where id = old.job_id) or tg_argv[1] = 'always' and old.job_id is null
  then
    raise exception 'headway: %', tg_argv[0];
  end if;
  return old;
end $$;

create trigger events_stay_with_their_job before delete on events for each row
  execute function headway_stays_with_its_job('events are append-only', 'always');

create trigger runs_stay_with_their_job before delete on runs for each row
  when (old.status is not null)
  execute function headway_stays_with_its_job('a finished run is final', 'never');
