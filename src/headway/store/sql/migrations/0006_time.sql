-- Time: schedules with their slots, and the periodic jobs of a jobs file.

-- What made it: `schedule-3`, or `jobs.yaml:NAME`; a retry has the same.
alter table jobs add column schedule_id text;
create index jobs_schedule on jobs (schedule_id, id) where schedule_id is not null;
create index jobs_schedule_active on jobs (schedule_id, id)
  where schedule_id is not null and finished_at is null;

-- `next_slot` is how far it has come: all slots before it are fired or skipped. It moves in the
-- transaction that makes the job of a slot.
create table schedules (
  id           $ID,
  name         text not null,
  document     text not null,                   -- the rule, what it makes, and how it treats missed slots
  enabled      bigint not null,
  version      bigint not null,                 -- counts its changes
  host_id      text,                            -- where its commands start; null: anywhere
  created_at   bigint not null,
  created_by   text not null,
  changed_at   bigint not null,                 -- no slot before this one
  next_slot    bigint,                          -- null: none will come
  next_fire_at bigint,                          -- that slot and its jitter; null also while disabled
  looked_at    bigint not null,                 -- when `next_slot` was found; later than now: a clock went back
  zones        text not null,                   -- the version of the time zones it was found with
  last_slot    bigint,                          -- the last that was fired
  last_job     bigint,
  forgotten    bigint                           -- of slots up to here no firing is kept any more
);
create unique index schedules_name on schedules (name);
create index schedules_due on schedules (next_fire_at, id) where next_fire_at is not null;

-- What became of slots: one row for each that was fired, one for all in a row that were skipped for
-- the same reason.
create table firings (
  schedule_id bigint not null,
  slot        bigint not null,
  last_slot   bigint not null,
  slots       bigint not null,
  outcome     text not null check (outcome in ('fired', 'skipped')),
  reason      text,
  job_id      bigint,
  at          bigint not null,
  primary key (schedule_id, slot)
);
create index firings_at on firings (at);

-- The jobs file of a home: what was last read, and the last that was good.
create table jobs_files (
  host_id      text primary key,
  digest       text not null,
  read_at      bigint not null,
  trouble      text,                            -- what is wrong with the present one, as JSON
  document     text,                            -- the last good set of entries
  loaded_at    bigint,
  poll_trouble text,                            -- why the last poll failed
  polled_at    bigint
);

-- What is known of each entry. Only executions count as runs; `held` says why a due one was held back.
create table entries (
  host_id     text not null,
  name        text not null,
  state       text,                             -- what its function keeps from run to run
  last_job    bigint,
  last_end_at bigint,
  last_status text,
  next_at     bigint,                           -- not looked at before; null: while its job is active
  held        text,
  held_at     bigint,
  gone_at     bigint,                           -- since when no jobs file has it; null while one has
  primary key (host_id, name)
);

insert into marks (name, value) values ('next_schedule_id', 1), ('next_fire_at', 0);
