-- Those that ended without success are few among all that ended: each state of them is found by itself, the
-- newest first.
drop index jobs_blocked;
create index jobs_ended_as on jobs (status, id) where finished_at is not null and status <> 'succeeded';
