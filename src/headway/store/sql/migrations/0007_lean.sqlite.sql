-- The guards look after the change, and at one column each: before it SQLite would read the row twice.
-- An end and its instant are written together, always.

drop trigger jobs_terminal_is_final;
create trigger jobs_terminal_is_final after update on jobs when old.finished_at is not null
begin
  select raise(abort, 'headway: a terminal job is final');
end;

drop trigger jobs_params_are_frozen;
create trigger jobs_params_are_frozen after update of params on jobs
  when old.status = 'running' and old.params is not new.params
begin
  select raise(abort, 'headway: Cannot modify params');
end;

drop trigger runs_terminal_is_final;
create trigger runs_terminal_is_final after update on runs when old.status is not null
begin
  select raise(abort, 'headway: a finished run is final');
end;
