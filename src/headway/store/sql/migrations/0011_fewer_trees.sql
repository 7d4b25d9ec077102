-- A new job stands where its id says, so nobody has to look for the last one of its priority: its position
-- is a hundred times its id, and what `positions_ahead` says more. That grows when a job is put after all
-- others. A function that waits is found by its stage; only other jobs stand in an index by their places. So
-- a submit, a start and an end of a function have one tree less to change.
insert into marks (name, value)
select 'positions_ahead', case when last.position > 100 * last.id then last.position - 100 * last.id else 0 end
from (
  select (select coalesce(max(position), 0) from jobs where finished_at is null) as position,
    (select case when value > (select coalesce(max(id), 0) from jobs) then value - 1
       else (select max(id) from jobs) end
     from marks where name = 'next_job_id') as id) as last;

drop index jobs_active;
create index jobs_in_line on jobs (level desc, position)
  where stage is not null and queue <> 'functions';

-- All jobs that have not ended: those that wait, and those that run.
create view active as
select id from jobs where stage is not null
union all select job_id from claims where state = 'live';

-- All that wait, with their places.
create view in_line as
select id, level, position, created_at from jobs where stage is not null and queue <> 'functions'
union all
select id, level, position, created_at from jobs where stage = 'woken' and queue = 'functions'
union all
select id, level, position, created_at from jobs where stage = 'ready' and queue = 'functions'
union all
select id, level, position, created_at from jobs where stage = 'filed' and queue = 'functions';

-- The first event of a job that was submitted by itself is found by the job, which knows its number, and not
-- in the index of all others: so such a submit has one tree less to change. It goes when the job goes.
alter table jobs add column first_event bigint;
alter table events add column apart bigint;  -- 1 for such a one

drop index events_job;
create index events_job on events (job_id, seq) where job_id is not null and apart is null;
