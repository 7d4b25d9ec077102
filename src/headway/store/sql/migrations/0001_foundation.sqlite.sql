-- The guards that need a trigger; PostgreSQL spells these differently, so each has its own.

create trigger jobs_terminal_is_final before update on jobs
  when old.status in ('succeeded', 'failed', 'skipped', 'cancelled', 'blocked_by_dependency',
                      'blocked_by_approval')
begin
  select raise(abort, 'headway: a terminal job is final');
end;

create trigger jobs_params_are_frozen before update of params on jobs
  when old.status = 'running' and old.params is not new.params
begin
  select raise(abort, 'headway: Cannot modify params');
end;

create trigger runs_are_audit_records
  before update of job_id, started_at, worker_id, params_snapshot on runs
begin
  select raise(abort, 'headway: Cannot modify immutable fields of a run');
end;

create trigger runs_terminal_is_final before update on runs when old.status is not null
begin
  select raise(abort, 'headway: a finished run is final');
end;

create trigger events_are_append_only before update on events
begin
  select raise(abort, 'headway: events are append-only');
end;

create trigger events_stay_with_their_job before delete on events
  when old.job_id is null or exists (select 1 from jobs where id = old.job_id)
begin
  select raise(abort, 'headway: events are append-only');
end;

create trigger runs_stay_with_their_job before delete on runs
  when old.status is not null and exists (select 1 from jobs where id = old.job_id)
begin
  select raise(abort, 'headway: a finished run is final');
end;
