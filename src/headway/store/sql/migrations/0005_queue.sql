-- The queue as a service: order that can be changed, groups, limits by type, resource, target and
-- rate, slots kept for direct calls, templates, and targets of slung work.

-- The priority that dispatch goes by: with ageing, that of older jobs is higher. Null: as `priority`.
alter table jobs add column level bigint;
alter table jobs add column group_id bigint;
alter table jobs add column sequence_number bigint;  -- its place in the group; a retry has the same
alter table jobs add column subject text;            -- the outside work item that it is about
alter table jobs add column target text;
alter table jobs add column template_id text;
alter table jobs add column quota text;              -- resources and rates as JSON; null: none
update jobs set level = priority where finished_at is null;

drop index jobs_dispatch;
create index jobs_dispatch on jobs (stage, queue, level desc, position, created_at, id)
  where stage is not null;
drop index jobs_active;
create index jobs_active on jobs (level, position) where finished_at is null;
create index jobs_group on jobs (group_id, sequence_number, id) where group_id is not null;
create index jobs_group_active on jobs (group_id, sequence_number)
  where group_id is not null and finished_at is null;
create index jobs_group_failed on jobs (group_id, sequence_number) where group_id is not null
  and finished_at is not null and status <> 'succeeded' and status <> 'skipped';
-- Whatever its target: nobody works on one thing twice at a time.
create unique index jobs_one_open_per_subject on jobs (subject)
  where subject is not null and finished_at is null;
create index jobs_subject on jobs (subject, id) where subject is not null;

-- What could not be launched: those that wait to be tried again, and those that were given up.
create index jobs_struck on jobs (id) where launch_wait is not null and finished_at is null;
create index jobs_circuit_broken on jobs (finished_at)
  where substr(reason, 1, 15) = 'circuit-broken:';

alter table waits rename column priority to level;
-- Which limits anyone waits for at all.
create index waits_limits on waits (topic) where substr(topic, 1, 6) = 'limit:';

-- What it takes of the limits while it runs, as words with spaces between.
alter table claims add column occupies text;

-- A group has no status of its own: that is derived from its members. `ended_at` says since when its
-- end has been told.
create table job_groups (
  id         $ID,
  name       text,
  mode       text not null check (mode in ('sequential', 'parallel')),
  on_failure text not null,
  subject    text,                              -- what it was slung from
  created_at bigint not null,
  created_by text not null,
  closed_at  bigint,
  ended_at   bigint
);
-- Not unique: a group that has ended gives its name free, and may run again when a member is retried.
create index job_groups_name on job_groups (name, id) where name is not null;
create index job_groups_subject on job_groups (subject, id) where subject is not null;

-- A slot for a caller outside of the queue: asked for, then granted, and gone unless it is renewed.
create table reservations (
  id           $ID,
  token        text not null,
  holder       text not null,
  note         text not null,                   -- what it is for, in words
  host_id      text not null,
  pid          bigint not null,
  occupies     text,
  inside       bigint,                          -- who makes it, and lends to it: a job, or below zero another of these
  requested_at bigint not null,
  granted_at   bigint,
  expires_at   bigint not null
);
create unique index reservations_token on reservations (token);

-- The starts that a rate counts, until they are too old to count.
create table rate_starts (
  key    text not null,
  at     bigint not null,
  job_id bigint not null,
  primary key (key, at, job_id)
);

create table templates (
  name        text primary key,
  document    text not null,
  created_at  bigint not null,
  created_by  text not null,
  archived_at bigint
);

create table targets (
  name       text primary key,
  prefix     text,
  document   text not null,
  created_at bigint not null,
  created_by text not null
);
create unique index targets_prefix on targets (prefix) where prefix is not null;

-- Those about no job go by their age.
create index events_about_none on events (at) where job_id is null;

insert into marks (name, value) values ('next_group_id', 1), ('next_reservation_id', 1);
