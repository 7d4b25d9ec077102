-- Events about no job may go when they are a day older than the newest of all: there may be many of
-- them, and no job takes them along. By the newest, since the clock of the database is not ours.
drop trigger events_stay_with_their_job;
create trigger events_stay_with_their_job before delete on events
  when exists (select 1 from jobs where id = old.job_id) or old.job_id is null
    and old.at > (select at from events order by seq desc limit 1) - 86400000000
begin
  select raise(abort, 'headway: events are append-only');
end;
