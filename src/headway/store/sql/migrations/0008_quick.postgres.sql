-- The guards look after the change, and at one column each: for one that looks before it, the server
-- locks each row first, and writes that down, whether or not there is anything to refuse. An end and its
-- instant are written together, always.

drop trigger jobs_terminal_is_final on jobs;
create trigger jobs_terminal_is_final after update on jobs for each row
  when (old.finished_at is not null)
  execute function headway_refuse('a terminal job is final');

drop trigger jobs_params_are_frozen on jobs;
create trigger jobs_params_are_frozen after update of params on jobs for each row
  when (old.status = 'running' and old.params is distinct from new.params)
  execute function headway_refuse('Cannot modify params');

drop trigger runs_are_audit_records on runs;
create trigger runs_are_audit_records
  after update of job_id, started_at, worker_id, params_snapshot on runs for each row
  execute function headway_refuse('Cannot modify immutable fields of a run');

drop trigger runs_terminal_is_final on runs;
create trigger runs_terminal_is_final after update on runs for each row
  when (old.status is not null)
  execute function headway_refuse('a finished run is final');
