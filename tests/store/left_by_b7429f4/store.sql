pragma user_version = 11;
pragma application_id = 0;
CREATE TABLE jobs (
  id                  integer primary key,
  name                text not null,
  type                text not null,
  status              text not null check (
    status = 'queued' or status = 'running' or status = 'succeeded' or status = 'failed' or
    status = 'waiting_on_deps' or status = 'waiting_on_locks' or status = 'waiting_on_approval' or
    status = 'skipped' or status = 'cancelled' or
    status = 'blocked_by_dependency' or status = 'blocked_by_approval'),
  priority            bigint not null,
  position            bigint not null,
  params              text not null,
  created_at          bigint not null,
  chain               bigint not null,          -- id of the chain's first job
  slug                text,
  labels              text not null,
  after_ids           text not null,            -- as declared; `edges` is what is waited for
  locks               text not null,
  retry               text not null,
  retry_of            bigint,
  attempt             bigint not null,
  retries_used        bigint not null,
  not_before          bigint,
  env_digest          text,
  idempotency_key     text,
  spec_digest         text not null,
  on_finish           text not null,
  submitted_by        text not null,
  launch_failures     bigint not null,
  last_failure        text,
  launch_wait         text,
  stage               text check (stage = 'woken' or stage = 'ready' or stage = 'filed'),
  wait_kind           text,
  wait_detail         text,
  wake_at             bigint,
  checked_at          bigint,                   -- while filed: when it was last looked at
  waited_on           text not null,
  reason              text,
  started_at          bigint,
  finished_at         bigint,
  cancel_requested_at bigint,
  cancel_requested_by text
, queue text not null default '', gates text, approval text, level bigint, group_id bigint, sequence_number bigint, subject text, target text, template_id text, quota text, schedule_id text, first_event bigint);
CREATE TABLE runs (
  job_id          integer primary key,
  started_at      bigint not null,
  worker_id       text not null,
  params_snapshot text not null,
  status          text check (status = 'COMPLETED' or status = 'FAILED' or status = 'SKIPPED'),
  exit_code       bigint,
  error           text,
  artifacts       text not null,
  finished_at     bigint
);
CREATE TABLE evidence (
  token    text not null,
  kind     text not null check (kind in ('outcome', 'late_outcome')),
  job_id   bigint not null,
  at       bigint not null,
  document text not null,
  primary key (token, kind)
);
CREATE TABLE edges (
  job_id   bigint not null,
  ord      bigint not null,
  declared bigint not null,
  chain    bigint not null,
  mark     text not null check (mark = 'pending' or mark = 'satisfied' or mark = 'failed'),
  primary key (job_id, ord)
);
CREATE TABLE waits (
  topic      text not null,
  job_id     bigint not null,
  mode       text,
  reserves   bigint not null,
  level   bigint not null,
  position   bigint not null,
  created_at bigint not null,
  primary key (topic, job_id)
);
CREATE TABLE held_locks (
  key    text not null,
  job_id bigint not null,
  mode   text not null,
  primary key (key, job_id)
);
CREATE TABLE lendings (
  token      text primary key,
  job_id     bigint not null,
  chain      bigint not null,
  expires_at bigint not null
);
CREATE TABLE events (
  seq    integer primary key,
  at     bigint not null,
  actor  text not null,
  kind   text not null,
  job_id bigint,
  data   text not null
, apart bigint);
CREATE TABLE settings (
  key        text primary key,
  value      text not null,
  updated_at bigint not null,
  updated_by text not null
);
CREATE TABLE pauses (
  scope  text primary key,
  actor  text not null,
  reason text,
  at     bigint not null
);
CREATE TABLE breakers (
  host_id   text primary key,
  kind      text not null,
  cause     text not null,
  failures  bigint not null,
  probe_at  bigint not null,
  opened_at bigint not null
);
CREATE TABLE workers (
  id         text primary key,
  host_id    text not null,
  home       text not null,
  boot_id    text not null,
  pid        bigint not null,
  mode       text not null,
  started_at bigint not null,
  settled_at bigint,                            -- it lived for a minute
  ended_at   bigint,
  ending     text
);
CREATE TABLE marks (
  name  text primary key,
  value bigint not null
);
CREATE TABLE hosts (
  id      text primary key,
  name    text not null,
  home    text not null,
  seen_at bigint not null
);
CREATE TABLE tasks_known (
  host_id text primary key,
  names   text not null,
  trouble text,
  at      bigint not null
);
CREATE TABLE results (
  job_id integer primary key,
  value  text not null
);
CREATE TABLE progress (
  job_id   integer primary key,
  fraction text not null,
  told     text not null,
  at       bigint not null
);
CREATE TABLE needs (
  artifact text not null,
  job_id   bigint not null,
  primary key (artifact, job_id)
);
CREATE TABLE produces (
  artifact text not null,
  job_id   bigint not null,
  chain    bigint not null,
  primary key (artifact, job_id)
);
CREATE TABLE artifacts (
  artifact     text not null,
  job_id       bigint not null,
  at           bigint not null,
  data         text,
  withdrawn_at bigint,
  primary key (artifact, job_id)
);
CREATE TABLE withdrawals (
  artifact text not null,
  chain    bigint not null,
  at       bigint not null,
  primary key (artifact, chain)
);
CREATE TABLE worktrees (
  job_id  integer primary key,
  repo    text not null,
  path    text not null,
  branch  text not null,
  base    text not null,
  state   text not null check (state in ('owned', 'degraded', 'cleaned')),
  error   text,
  at      bigint not null
);
CREATE TABLE removals (
  host_id text not null,
  job_id  bigint not null,
  primary key (host_id, job_id)
);
CREATE TABLE job_groups (
  id         integer primary key,
  name       text,
  mode       text not null check (mode in ('sequential', 'parallel')),
  on_failure text not null,
  subject    text,                              -- what it was slung from
  created_at bigint not null,
  created_by text not null,
  closed_at  bigint,
  ended_at   bigint
);
CREATE TABLE reservations (
  id           integer primary key,
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
CREATE TABLE rate_starts (
  key    text not null,
  at     bigint not null,
  job_id bigint not null,
  primary key (key, at, job_id)
);
CREATE TABLE templates (
  name        text primary key,
  document    text not null,
  created_at  bigint not null,
  created_by  text not null,
  archived_at bigint
);
CREATE TABLE targets (
  name       text primary key,
  prefix     text,
  document   text not null,
  created_at bigint not null,
  created_by text not null
);
CREATE TABLE schedules (
  id           integer primary key,
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
CREATE TABLE firings (
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
CREATE TABLE jobs_files (
  host_id      text primary key,
  digest       text not null,
  read_at      bigint not null,
  trouble      text,                            -- what is wrong with the present one, as JSON
  document     text,                            -- the last good set of entries
  loaded_at    bigint,
  poll_trouble text,                            -- why the last poll failed
  polled_at    bigint
);
CREATE TABLE entries (
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
CREATE TABLE "claims" (
  job_id        integer primary key,
  token         text not null,
  state         text not null check (state = 'live' or state = 'ended' or state = 'gone'),
  slot          bigint not null,
  worker_id     text not null,
  host_id       text not null,
  home          text not null,
  boot_id       text not null,
  folder        text not null,
  claimed_at    bigint not null,
  borrowed_from bigint,
  probe         bigint not null,
  lease_until   bigint,
  function_host text,
  occupies      text
);
insert into jobs values (1, 'ended-ok', 'command', 'succeeded', 0, 100, '{"argv":["sh","-c","echo ended-ok >> ran"],"grace_seconds":10.0}', 1794923238200540, 1, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923241848616, 1794923241941534, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2);
insert into jobs values (2, 'ended-retried', 'command', 'failed', 0, 200, '{"argv":["sh","-c","exit 3"],"grace_seconds":10.0}', 1794923238891058, 2, NULL, '{}', '[]', '[]', '{"base":1000000,"cap":3600000000,"jitter":0.0,"max_attempts":1,"on":[]}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 'exit code 3', 1794923241848616, 1794923241940814, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3);
insert into jobs values (3, 'ended-skipped', 'command', 'skipped', 0, 300, '{"argv":["sh","-c","exit 9"],"grace_seconds":10.0,"skip_exit_codes":[9]}', 1794923239416060, 3, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 'skipped: exit code 9', 1794923241848616, 1794923241926597, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4);
insert into jobs values (4, 'ended-cancelled', 'command', 'cancelled', 0, 400, '{"argv":["sh","-c","echo ended-cancelled >> ran"],"grace_seconds":10.0}', 1794923239957544, 4, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, 1794926839957544, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 'cancelled by tester', NULL, 1794923240467483, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (5, 'ended-patch', 'command', 'succeeded', 0, 500, '{"argv":["sh","-c","echo more >> chores.py"],"grace_seconds":10.0,"save_patch":true,"worktree":{"base":"aba8ae40ea5b42d83f65306a5e7de7fc1956a441","folder":"@PROJECT@/.headway/worktrees","inside":".","repo":"@PROJECT@"}}', 1794923240771818, 5, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923241848616, 1794923242397727, NULL, NULL, '', '{"repo":"@PROJECT@"}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (6, 'group-first', 'command', 'succeeded', 0, 600, '{"argv":["sh","-c","echo group-first >> ran"],"grace_seconds":10.0}', 1794923241359277, 6, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923241848616, 1794923241963921, NULL, NULL, '', NULL, NULL, 0, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (7, 'note', 'function', 'succeeded', 5, 700, '{"args":{"word":"ended-call"},"task":"chores.note"}', 1794923241726159, 7, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, NULL, NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923242278546, 1794923242304590, NULL, NULL, 'functions', NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10);
insert into jobs values (8, 'ended-retried', 'command', 'failed', 0, 200, '{"argv":["sh","-c","exit 3"],"grace_seconds":10.0}', 1794923241976486, 2, NULL, '{}', '[]', '[]', '{"base":1000000,"cap":3600000000,"jitter":0.0,"max_attempts":1,"on":[]}', 2, 2, 1, 1794923242940814, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '["time"]', 'exit code 3; attempt 2 of 2, no retry is left', 1794923243028314, 1794923243060668, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (9, 'group-failed', 'command', 'failed', 0, 900, '{"argv":["sh","-c","exit 1"],"grace_seconds":10.0}', 1794923243772184, 9, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 'exit code 1', 1794923244179495, 1794923244218007, NULL, NULL, '', NULL, NULL, 0, 2, 1, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (10, 'group-stopped', 'command', 'cancelled', 0, 1000, '{"argv":["sh","-c","echo group-stopped >> ran"],"grace_seconds":10.0}', 1794923244067480, 10, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '["group"]', 'predecessor failed', NULL, 1794923244222654, NULL, NULL, '', NULL, NULL, 0, 2, 2, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (11, 'hang', 'function', 'running', 5, 1100, '{"args":{"word":"left-call"},"task":"chores.hang"}', 1794923244630741, 11, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, NULL, NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923246764912, NULL, NULL, NULL, 'functions', NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 37);
insert into jobs values (12, 'left-rebooted', 'command', 'running', 0, 1200, '{"argv":["sh","-c","echo left-rebooted >> ran; exec sleep 600"],"grace_seconds":10.0}', 1794923245265546, 12, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923246764912, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 38);
insert into jobs values (13, 'left-retried', 'command', 'running', 0, 1300, '{"argv":["sh","-c","echo left-retried $HEADWAY_ATTEMPT >> ran; [ \"$HEADWAY_ATTEMPT\" = 2 ] || exec sleep 600"],"grace_seconds":10.0}', 1794923245730824, 13, NULL, '{}', '[]', '[]', '{"base":1000000,"cap":3600000000,"jitter":0.0,"max_attempts":1,"on":["unknown"]}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923246764912, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 39);
insert into jobs values (14, 'left-alone', 'command', 'running', 0, 1400, '{"argv":["sh","-c","echo left-alone >> ran; exec sleep 600"],"grace_seconds":10.0}', 1794923246245350, 14, NULL, '{}', '[]', '[["repo","exclusive"]]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923246764912, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (15, 'left-done', 'command', 'running', 0, 1500, '{"argv":["sh","-c","echo left-done >> ran; while ! [ -e go ]; do sleep 0.1; done"],"grace_seconds":10.0}', 1794923246729965, 15, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923246764912, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 41);
insert into jobs values (16, 'left-claimed', 'command', 'running', 0, 1600, '{"argv":["sh","-c","echo left-claimed >> ran"],"grace_seconds":10.0}', 1794923247277668, 16, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, 1794923247316646, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 47);
insert into jobs values (17, 'waits-place', 'command', 'queued', 0, 1700, '{"argv":["sh","-c","echo waits-place >> ran"],"grace_seconds":10.0}', 1794923247778397, 17, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 49);
insert into jobs values (18, 'waits-retried-job', 'command', 'waiting_on_deps', 0, 1800, '{"argv":["sh","-c","echo waits-retried-job >> ran"],"grace_seconds":10.0}', 1794923248239965, 18, NULL, '{}', '[13]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'dependencies', 'waiting on job job-13', NULL, 1794923248239965, '["dependencies"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (19, 'waits-lost-job', 'command', 'waiting_on_deps', 0, 1900, '{"argv":["sh","-c","echo waits-lost-job >> ran"],"grace_seconds":10.0}', 1794923248928445, 19, NULL, '{}', '[14]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'dependencies', 'waiting on job job-14', NULL, 1794923248928445, '["dependencies"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (20, 'waits-done-job', 'command', 'waiting_on_deps', 0, 2000, '{"argv":["sh","-c","echo waits-done-job >> ran"],"grace_seconds":10.0}', 1794923249502544, 20, NULL, '{}', '[15]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'dependencies', 'waiting on job job-15', NULL, 1794923249502544, '["dependencies"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (21, 'waits-lock', 'command', 'waiting_on_locks', 0, 2100, '{"argv":["sh","-c","echo waits-lock >> ran"],"grace_seconds":10.0}', 1794923249981730, 21, NULL, '{}', '[]', '[["repo","exclusive"]]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'locks', 'waiting on locks', NULL, NULL, '["locks"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (22, 'waits-time', 'command', 'queued', 0, 2200, '{"argv":["sh","-c","echo waits-time >> ran"],"grace_seconds":10.0}', 1794923250433119, 22, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, 4070908800000000, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'time', 'waiting for its time', 4070908800000000, 1794923256121627, '["time"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (23, 'waits-delay', 'command', 'queued', 0, 2300, '{"argv":["sh","-c","echo waits-delay >> ran"],"grace_seconds":10.0}', 1794923250687095, 23, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, 1794930450687095, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'time', 'waiting for its time', 1794930450687095, 1794923256121627, '["time"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (24, 'waits-approval', 'command', 'waiting_on_approval', 0, 2400, '{"argv":["sh","-c","echo waits-approval >> ran"],"grace_seconds":10.0}', 1794923250965471, 24, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'approval', 'awaiting human approval', NULL, 1794923256121627, '["approval"]', NULL, NULL, NULL, NULL, NULL, '', NULL, '{"decided_at":null,"decided_by":null,"reason":null,"requested_at":1794923250965471,"requested_by":"tester","state":"pending"}', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (25, 'waits-artifact', 'command', 'waiting_on_deps', 0, 2500, '{"argv":["sh","-c","echo waits-artifact >> ran"],"grace_seconds":10.0}', 1794923251374790, 25, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'filed', 'dependencies', 'waiting on custom:plan:one', NULL, 1794923256121627, '["dependencies"]', NULL, NULL, NULL, NULL, NULL, '', '{"needs":["custom:plan:one"]}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (26, 'makes-artifact', 'command', 'queued', 0, 2600, '{"argv":["sh","-c","echo makes-artifact >> ran"],"grace_seconds":10.0}', 1794923251647106, 26, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', '{"produces":["custom:plan:one"]}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (27, 'waits-worktree', 'command', 'queued', 0, 2700, '{"argv":["sh","-c","git rev-parse HEAD > $HEADWAY_HOME/../head"],"grace_seconds":10.0,"worktree":{"base":"aba8ae40ea5b42d83f65306a5e7de7fc1956a441","folder":"@PROJECT@/.headway/worktrees","inside":".","repo":"@PROJECT@"}}', 1794923252122918, 27, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', '{"repo":"@PROJECT@"}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (28, 'group-second', 'command', 'queued', 0, 2800, '{"argv":["sh","-c","echo group-second >> ran"],"grace_seconds":10.0}', 1794923252437568, 28, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, 1, 2, NULL, NULL, NULL, NULL, NULL, NULL);
insert into jobs values (29, 'note', 'function', 'queued', 5, 2900, '{"args":{"word":"waits-call"},"task":"chores.note"}', 1794923252666990, 29, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, NULL, NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', NULL, NULL, NULL, NULL, '[]', NULL, NULL, NULL, NULL, NULL, 'functions', NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 64);
insert into jobs values (30, 'sh -c echo "report $1" >> ran sh june', 'command', 'queued', 0, 3000, '{"argv":["sh","-c","echo \"report $1\" >> ran","sh","june"],"grace_seconds":10.0}', 1794923253210281, 30, NULL, '{}', '[]', '[]', '{"base":10000000,"cap":3600000000,"jitter":0.0,"max_attempts":3,"on":[]}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, 'report', NULL, NULL, NULL);
insert into jobs values (31, 'gt-1: Log in with a key', 'command', 'queued', 0, 3100, '{"argv":["sh","-c","echo \"slung $1\" >> ran","sh","gt-1"],"cwd":"@PROJECT@","env":{"HEADWAY_SUBJECT":"gt-1","HEADWAY_TARGET":"town"},"grace_seconds":10.0,"sling":{"args":null,"place":"@PROJECT@/.headway/tasks","recipe":"command","source":"tasks","title":"Log in with a key","vars":{},"version":1}}', 1794923254166019, 31, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, '90261f705a8203d9462d2dcc60c5c9bbfaffb6e8feb230a63ea5e11ccaefcec6', NULL, '', '[]', 'tester', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["subject","capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, 3, 1, 'gt-1', 'town', NULL, NULL, NULL, NULL);
insert into jobs values (32, 'sweep', 'script', 'queued', 0, 3200, '{"argv":["@PYTHON@","-P","-m","headway.jobsfile.script","sweep","sweep"],"grace_seconds":10.0,"skip_exit_codes":[77]}', 1794923256501657, 32, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, NULL, NULL, '', '[]', 'jobs.yaml', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'jobs.yaml:sweep', NULL);
insert into jobs values (33, 'review', 'script', 'queued', 0, 3300, '{"argv":["@PYTHON@","-P","-m","headway.jobsfile.script","review","chores:review"],"env":{"HEADWAY_POLL_DATA":"@PROJECT@/.headway/run/polls/27433f658eae327c.json"},"grace_seconds":10.0,"skip_exit_codes":[77]}', 1794923256501657, 33, NULL, '{}', '[]', '[]', '{}', NULL, 1, 0, NULL, NULL, NULL, '', '[]', 'jobs.yaml', 0, NULL, NULL, 'ready', 'capacity', 'all 6 slots are in use', NULL, NULL, '["capacity"]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'jobs.yaml:review', NULL);
insert into runs values (1, 1794923241848616, 'worker-left', '{"argv":["sh","-c","echo ended-ok >> ran"],"grace_seconds":10.0}', 'COMPLETED', 0, NULL, '[]', 1794923241941534);
insert into runs values (2, 1794923241848616, 'worker-left', '{"argv":["sh","-c","exit 3"],"grace_seconds":10.0}', 'FAILED', 3, 'exit code 3', '[]', 1794923241940814);
insert into runs values (3, 1794923241848616, 'worker-left', '{"argv":["sh","-c","exit 9"],"grace_seconds":10.0,"skip_exit_codes":[9]}', 'SKIPPED', 9, 'skipped: exit code 9', '[]', 1794923241926597);
insert into runs values (5, 1794923241848616, 'worker-left', '{"argv":["sh","-c","echo more >> chores.py"],"grace_seconds":10.0,"save_patch":true,"worktree":{"base":"aba8ae40ea5b42d83f65306a5e7de7fc1956a441","folder":"@PROJECT@/.headway/worktrees","inside":".","repo":"@PROJECT@"}}', 'COMPLETED', 0, NULL, '[]', 1794923242397727);
insert into runs values (6, 1794923241848616, 'worker-left', '{"argv":["sh","-c","echo group-first >> ran"],"grace_seconds":10.0}', 'COMPLETED', 0, NULL, '[]', 1794923241963921);
insert into runs values (7, 1794923242278546, 'worker-left', '{"args":{"word":"ended-call"},"task":"chores.note"}', 'COMPLETED', 0, NULL, '[]', 1794923242304590);
insert into runs values (8, 1794923243028314, 'worker-left', '{"argv":["sh","-c","exit 3"],"grace_seconds":10.0}', 'FAILED', 3, 'exit code 3', '[]', 1794923243060668);
insert into runs values (9, 1794923244179495, 'worker-left', '{"argv":["sh","-c","exit 1"],"grace_seconds":10.0}', 'FAILED', 1, 'exit code 1', '[]', 1794923244218007);
insert into runs values (11, 1794923246764912, 'worker-left', '{"args":{"word":"left-call"},"task":"chores.hang"}', NULL, NULL, NULL, '[]', NULL);
insert into runs values (12, 1794923246764912, 'worker-left', '{"argv":["sh","-c","echo left-rebooted >> ran; exec sleep 600"],"grace_seconds":10.0}', NULL, NULL, NULL, '[]', NULL);
insert into runs values (13, 1794923246764912, 'worker-left', '{"argv":["sh","-c","echo left-retried $HEADWAY_ATTEMPT >> ran; [ \"$HEADWAY_ATTEMPT\" = 2 ] || exec sleep 600"],"grace_seconds":10.0}', NULL, NULL, NULL, '[]', NULL);
insert into runs values (14, 1794923246764912, 'worker-left', '{"argv":["sh","-c","echo left-alone >> ran; exec sleep 600"],"grace_seconds":10.0}', NULL, NULL, NULL, '[]', NULL);
insert into runs values (15, 1794923246764912, 'worker-left', '{"argv":["sh","-c","echo left-done >> ran; while ! [ -e go ]; do sleep 0.1; done"],"grace_seconds":10.0}', NULL, NULL, NULL, '[]', NULL);
insert into runs values (16, 1794923247316646, 'worker-left', '{"argv":["sh","-c","echo left-claimed >> ran"],"grace_seconds":10.0}', NULL, NULL, NULL, '[]', NULL);
insert into evidence values ('066079223abf281ac258c9442ef24e2c', 'outcome', 3, 1794923241941208, '{"core_dumped":false,"errno":null,"error":null,"exit_code":9,"finished_at":1794923241926597,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923241912634,"tree":"gone","usage":{"max_rss_kb":8228,"system_seconds":0.0,"user_seconds":0.002296},"wait_status":2304}');
insert into evidence values ('066079223abf28615a479af570974b24', 'outcome', 1, 1794923241976486, '{"core_dumped":false,"errno":null,"error":null,"exit_code":0,"finished_at":1794923241941534,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923241913062,"tree":"gone","usage":{"max_rss_kb":8228,"system_seconds":0.0,"user_seconds":0.002555},"wait_status":0}');
insert into evidence values ('066079223abf28cb3a494ba133e201ea', 'outcome', 2, 1794923241976486, '{"core_dumped":false,"errno":null,"error":null,"exit_code":3,"finished_at":1794923241940814,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923241914869,"tree":"gone","usage":{"max_rss_kb":8168,"system_seconds":0.0,"user_seconds":0.0023109999999999997},"wait_status":768}');
insert into evidence values ('066079223abf286c97c8599ccddfe8a7', 'outcome', 6, 1794923242017303, '{"core_dumped":false,"errno":null,"error":null,"exit_code":0,"finished_at":1794923241963921,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923241934321,"tree":"gone","usage":{"max_rss_kb":8228,"system_seconds":0.0,"user_seconds":0.002247},"wait_status":0}');
insert into evidence values ('066079223abf28ddc1c244de36909db1', 'outcome', 5, 1794923242804776, '{"core_dumped":false,"errno":null,"error":null,"exit_code":0,"finished_at":1794923242397727,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"patch":{"bytes":323,"saved":true},"reason":"exited","signal":null,"started_at":1794923241932424,"tree":"gone","usage":{"max_rss_kb":16524,"system_seconds":0.03556,"user_seconds":0.047779999999999996},"wait_status":0}');
insert into evidence values ('066079224cbf5a6745c14dcd233e9d61', 'outcome', 8, 1794923243077104, '{"core_dumped":false,"errno":null,"error":null,"exit_code":3,"finished_at":1794923243060668,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923243045938,"tree":"gone","usage":{"max_rss_kb":8252,"system_seconds":0.0,"user_seconds":0.0022429999999999998},"wait_status":768}');
insert into evidence values ('066079225e502762386a3ed3aaeae8ac', 'outcome', 9, 1794923244222654, '{"core_dumped":false,"errno":null,"error":null,"exit_code":1,"finished_at":1794923244218007,"logs":{"stderr":{"bytes":0,"dropped":0},"stdout":{"bytes":0,"dropped":0}},"reason":"exited","signal":null,"started_at":1794923244202346,"tree":"gone","usage":{"max_rss_kb":8252,"system_seconds":0.0,"user_seconds":0.001857},"wait_status":256}');
insert into edges values (18, 0, 13, 13, 'pending');
insert into edges values (19, 0, 14, 14, 'pending');
insert into edges values (20, 0, 15, 15, 'pending');
insert into waits values ('chain:13', 18, NULL, 0, 0, 1800, 1794923248239965);
insert into waits values ('chain:14', 19, NULL, 0, 0, 1900, 1794923248928445);
insert into waits values ('chain:15', 20, NULL, 0, 0, 2000, 1794923249502544);
insert into waits values ('lock:repo', 21, 'exclusive', 0, 0, 2100, 1794923249981730);
insert into waits values ('artifact:custom:plan:one', 25, NULL, 0, 0, 2500, 1794923251374790);
insert into held_locks values ('repo', 14, 'exclusive');
insert into events values (1, 1794923237795088, 'tester', 'set', NULL, '{"key":"scheduler.max_active","value":6}', NULL);
insert into events values (2, 1794923238200540, 'tester', 'submitted', 1, '{"name":"ended-ok"}', 1);
insert into events values (3, 1794923238891058, 'tester', 'submitted', 2, '{"name":"ended-retried"}', 1);
insert into events values (4, 1794923239416060, 'tester', 'submitted', 3, '{"name":"ended-skipped"}', 1);
insert into events values (5, 1794923239957544, 'tester', 'submitted', 4, '{"name":"ended-cancelled"}', NULL);
insert into events values (6, 1794923240467483, 'tester', 'cancelled', 4, '{"reason":"cancelled by tester"}', NULL);
insert into events values (7, 1794923240771818, 'tester', 'submitted', 5, '{"name":"ended-patch"}', NULL);
insert into events values (8, 1794923241042889, 'tester', 'group_created', NULL, '{"group":"group-1","mode":"sequential","name":"release","on_failure":"stop"}', NULL);
insert into events values (9, 1794923241359277, 'tester', 'submitted', 6, '{"name":"group-first"}', NULL);
insert into events values (10, 1794923241726159, 'tester', 'submitted', 7, '{"name":"note"}', 1);
insert into events values (11, 1794923241848616, 'worker-left', 'running', 1, '{"slot":1}', NULL);
insert into events values (12, 1794923241848616, 'worker-left', 'running', 2, '{"slot":2}', NULL);
insert into events values (13, 1794923241848616, 'worker-left', 'running', 3, '{"slot":3}', NULL);
insert into events values (14, 1794923241848616, 'worker-left', 'running', 5, '{"slot":4}', NULL);
insert into events values (15, 1794923241848616, 'worker-left', 'running', 6, '{"slot":5}', NULL);
insert into events values (16, 1794923241941208, 'worker-left', 'skipped', 3, '{"attempt":1,"exit_code":9,"reason":"skipped: exit code 9"}', NULL);
insert into events values (17, 1794923241976486, 'worker-left', 'succeeded', 1, '{"attempt":1,"exit_code":0}', NULL);
insert into events values (18, 1794923241976486, 'worker-left', 'failed', 2, '{"attempt":1,"exit_code":3,"reason":"exit code 3"}', NULL);
insert into events values (19, 1794923241976486, 'worker-left', 'retried', 2, '{"by":"job-8","not_before":1794923242940814,"reason":"exit code 3"}', NULL);
insert into events values (20, 1794923241976486, 'worker-left', 'submitted', 8, '{"attempt":2,"name":"ended-retried","retry_of":"job-2"}', NULL);
insert into events values (21, 1794923241976486, 'worker-left', 'queued', 8, '{"detail":"backing off before attempt 2","wait":"time"}', NULL);
insert into events values (22, 1794923242017303, 'worker-left', 'succeeded', 6, '{"attempt":1,"exit_code":0}', NULL);
insert into events values (23, 1794923242278546, 'worker-left', 'running', 7, '{"slot":1}', NULL);
insert into events values (24, 1794923242309022, 'worker-left', 'succeeded', 7, '{"attempt":1,"exit_code":0}', NULL);
insert into events values (25, 1794923242804776, 'worker-left', 'succeeded', 5, '{"attempt":1,"exit_code":0}', NULL);
insert into events values (26, 1794923243028314, 'worker-left', 'running', 8, '{"slot":1}', NULL);
insert into events values (27, 1794923243077104, 'worker-left', 'failed', 8, '{"attempt":2,"exit_code":3,"reason":"exit code 3; attempt 2 of 2, no retry is left"}', NULL);
insert into events values (28, 1794923243427324, 'tester', 'group_created', NULL, '{"group":"group-2","mode":"sequential","name":"broken","on_failure":"stop"}', NULL);
insert into events values (29, 1794923243772184, 'tester', 'submitted', 9, '{"name":"group-failed"}', NULL);
insert into events values (30, 1794923244067480, 'tester', 'group_closed', NULL, '{"group":"group-2"}', NULL);
insert into events values (31, 1794923244067480, 'tester', 'submitted', 10, '{"name":"group-stopped"}', NULL);
insert into events values (32, 1794923244179495, 'worker-left', 'running', 9, '{"slot":1}', NULL);
insert into events values (33, 1794923244179495, 'worker-left', 'waiting_on_deps', 10, '{"detail":"waiting for its turn in group-2, after job-9","wait":"group"}', NULL);
insert into events values (34, 1794923244222654, 'worker-left', 'failed', 9, '{"attempt":1,"exit_code":1,"reason":"exit code 1"}', NULL);
insert into events values (35, 1794923244222654, 'worker-left', 'cancelled', 10, '{"reason":"predecessor failed"}', NULL);
insert into events values (36, 1794923244222654, 'worker-left', 'group_ended', NULL, '{"cancelled":1,"failed":1,"group":"group-2","members":2,"name":"broken","status":"PARTIAL"}', NULL);
insert into events values (37, 1794923244630741, 'tester', 'submitted', 11, '{"name":"hang"}', 1);
insert into events values (38, 1794923245265546, 'tester', 'submitted', 12, '{"name":"left-rebooted"}', 1);
insert into events values (39, 1794923245730824, 'tester', 'submitted', 13, '{"name":"left-retried"}', 1);
insert into events values (40, 1794923246245350, 'tester', 'submitted', 14, '{"name":"left-alone"}', NULL);
insert into events values (41, 1794923246729965, 'tester', 'submitted', 15, '{"name":"left-done"}', 1);
insert into events values (42, 1794923246764912, 'worker-left', 'running', 11, '{"slot":1}', NULL);
insert into events values (43, 1794923246764912, 'worker-left', 'running', 12, '{"slot":2}', NULL);
insert into events values (44, 1794923246764912, 'worker-left', 'running', 13, '{"slot":3}', NULL);
insert into events values (45, 1794923246764912, 'worker-left', 'running', 14, '{"slot":4}', NULL);
insert into events values (46, 1794923246764912, 'worker-left', 'running', 15, '{"slot":5}', NULL);
insert into events values (47, 1794923247277668, 'tester', 'submitted', 16, '{"name":"left-claimed"}', 1);
insert into events values (48, 1794923247316646, 'worker-left', 'running', 16, '{"slot":6}', NULL);
insert into events values (49, 1794923247778397, 'tester', 'submitted', 17, '{"name":"waits-place"}', 1);
insert into events values (50, 1794923248239965, 'tester', 'submitted', 18, '{"name":"waits-retried-job"}', NULL);
insert into events values (51, 1794923248239965, 'tester', 'waiting_on_deps', 18, '{"detail":"waiting on job job-13","wait":"dependencies"}', NULL);
insert into events values (52, 1794923248928445, 'tester', 'submitted', 19, '{"name":"waits-lost-job"}', NULL);
insert into events values (53, 1794923248928445, 'tester', 'waiting_on_deps', 19, '{"detail":"waiting on job job-14","wait":"dependencies"}', NULL);
insert into events values (54, 1794923249502544, 'tester', 'submitted', 20, '{"name":"waits-done-job"}', NULL);
insert into events values (55, 1794923249502544, 'tester', 'waiting_on_deps', 20, '{"detail":"waiting on job job-15","wait":"dependencies"}', NULL);
insert into events values (56, 1794923249981730, 'tester', 'submitted', 21, '{"name":"waits-lock"}', NULL);
insert into events values (57, 1794923250433119, 'tester', 'submitted', 22, '{"name":"waits-time"}', NULL);
insert into events values (58, 1794923250687095, 'tester', 'submitted', 23, '{"name":"waits-delay"}', NULL);
insert into events values (59, 1794923250965471, 'tester', 'submitted', 24, '{"name":"waits-approval"}', NULL);
insert into events values (60, 1794923251374790, 'tester', 'submitted', 25, '{"name":"waits-artifact"}', NULL);
insert into events values (61, 1794923251647106, 'tester', 'submitted', 26, '{"name":"makes-artifact"}', NULL);
insert into events values (62, 1794923252122918, 'tester', 'submitted', 27, '{"name":"waits-worktree"}', NULL);
insert into events values (63, 1794923252437568, 'tester', 'submitted', 28, '{"name":"group-second"}', NULL);
insert into events values (64, 1794923252666990, 'tester', 'submitted', 29, '{"name":"note"}', 1);
insert into events values (65, 1794923252874472, 'tester', 'template_added', NULL, '{"replaced":false,"template":"report"}', NULL);
insert into events values (66, 1794923253210281, 'tester', 'submitted', 30, '{"name":"sh -c echo \"report $1\" >> ran sh june"}', NULL);
insert into events values (67, 1794923253585394, 'tester', 'target_added', NULL, '{"target":"town"}', NULL);
insert into events values (68, 1794923254166019, 'tester', 'submitted', 31, '{"name":"gt-1: Log in with a key"}', NULL);
insert into events values (69, 1794923254166019, 'tester', 'group_created', NULL, '{"group":"group-3","mode":"parallel","on_failure":"continue"}', NULL);
insert into events values (70, 1794923254166019, 'tester', 'group_closed', NULL, '{"group":"group-3"}', NULL);
insert into events values (71, 1794923254166019, 'tester', 'slung', 31, '{"group":"group-3","subject":"gt-1","target":"town"}', NULL);
insert into events values (72, 1794923254725038, 'tester', 'schedule_added', NULL, '{"name":"daily","replaced":false,"schedule":"schedule-1"}', NULL);
insert into events values (73, 1794923255377382, 'tester', 'schedule_added', NULL, '{"name":"often","replaced":false,"schedule":"schedule-2"}', NULL);
insert into events values (74, 1794923256012578, 'tester', 'schedule_added', NULL, '{"name":"once","replaced":false,"schedule":"schedule-3"}', NULL);
insert into events values (75, 1794923256121627, 'worker-left', 'jobs_file_loaded', NULL, '{"enabled":4,"entries":4}', NULL);
insert into events values (76, 1794923256121627, 'worker-left', 'queued', 17, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (77, 1794923256121627, 'worker-left', 'waiting_on_locks', 21, '{"detail":"waiting on locks","wait":"locks"}', NULL);
insert into events values (78, 1794923256121627, 'worker-left', 'queued', 22, '{"detail":"waiting for its time","wait":"time"}', NULL);
insert into events values (79, 1794923256121627, 'worker-left', 'queued', 23, '{"detail":"waiting for its time","wait":"time"}', NULL);
insert into events values (80, 1794923256121627, 'worker-left', 'waiting_on_approval', 24, '{"detail":"awaiting human approval","wait":"approval"}', NULL);
insert into events values (81, 1794923256121627, 'worker-left', 'waiting_on_deps', 25, '{"detail":"waiting on custom:plan:one","wait":"dependencies"}', NULL);
insert into events values (82, 1794923256121627, 'worker-left', 'queued', 26, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (83, 1794923256121627, 'worker-left', 'queued', 27, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (84, 1794923256121627, 'worker-left', 'queued', 28, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (85, 1794923256121627, 'worker-left', 'queued', 30, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (86, 1794923256121627, 'worker-left', 'waiting_on_deps', 31, '{"detail":"looking at gt-1","wait":"subject"}', NULL);
insert into events values (87, 1794923256501657, 'worker-left', 'entry_held', NULL, '{"entry":"closed","reason":"condition gate_is_open does not hold"}', NULL);
insert into events values (88, 1794923256501657, 'jobs.yaml', 'submitted', 32, '{"name":"sweep"}', NULL);
insert into events values (89, 1794923256501657, 'jobs.yaml', 'submitted', 33, '{"name":"review"}', NULL);
insert into events values (90, 1794923256501657, 'worker-left', 'queued', 31, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (91, 1794923256501657, 'worker-left', 'queued', 32, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into events values (92, 1794923256501657, 'worker-left', 'queued', 33, '{"detail":"all 6 slots are in use","wait":"capacity"}', NULL);
insert into settings values ('scheduler.max_active', '6', 1794923237795088, 'tester');
insert into marks values ('next_job_id', 9);
insert into marks values ('last_dispatch_at', 1794923247316646);
insert into marks values ('last_dispatch_count', 1);
insert into marks values ('log_bytes', 0);
insert into marks values ('crashes_forgiven_at', 0);
insert into marks values ('next_group_id', 4);
insert into marks values ('next_reservation_id', 1);
insert into marks values ('next_schedule_id', 4);
insert into marks values ('next_fire_at', 1794925055990570);
insert into marks values ('positions_ahead', 0);
insert into hosts values ('@HOST@', 'host', '@PROJECT@/.headway', 1794923237261243);
insert into tasks_known values ('@HOST@', '["chores.hang","chores.note"]', NULL, 1794923242278546);
insert into results values (7, '"ENDED-CALL"');
insert into needs values ('custom:plan:one', 25);
insert into produces values ('custom:plan:one', 26, 26);
insert into worktrees values (5, '@PROJECT@', '@PROJECT@/.headway/worktrees/job-5', 'headway/job-5', 'aba8ae40ea5b42d83f65306a5e7de7fc1956a441', 'owned', NULL, 1794923240771818);
insert into worktrees values (27, '@PROJECT@', '@PROJECT@/.headway/worktrees/job-27', 'headway/job-27', 'aba8ae40ea5b42d83f65306a5e7de7fc1956a441', 'owned', NULL, 1794923252122918);
insert into job_groups values (1, 'release', 'sequential', 'stop', NULL, 1794923241042889, 'tester', NULL, NULL);
insert into job_groups values (2, 'broken', 'sequential', 'stop', NULL, 1794923243427324, 'tester', 1794923244067480, 1794923244222654);
insert into job_groups values (3, NULL, 'parallel', 'continue', 'gt-1', 1794923254166019, 'tester', 1794923254166019, NULL);
insert into templates values ('report', '{"job":{"argv":["sh","-c","echo \"report $1\" >> ran","sh","{month}"],"retries":3,"retry_base":"10s"},"params":{"month":null}}', 1794923252874472, 'tester', NULL);
insert into targets values ('town', 'gt-', '{"argv":["sh","-c","echo \"slung $1\" >> ran","sh","{subject}"],"cwd":null,"env":{},"helper":[],"locks":[],"resources":[],"retries":0,"timeout":null}', 1794923253585394, 'tester');
insert into schedules values (1, 'daily', '{"agent":null,"catch_up":"latest","jitter":0,"job":{"argv":["sh","-c","echo daily >> ran"],"retries":3,"retry_base":"10s"},"overlap":"skip","params":{},"rule":{"cron":"47 4 * * *","timezone":"UTC"},"template":null,"window":86400000000}', 1, 1, '@HOST@', 1794923254725038, 'tester', 1794923254725038, 1794977220000000, 1794977220000000, 1794923254725038, '2025b', NULL, NULL, NULL);
insert into schedules values (2, 'often', '{"agent":null,"catch_up":"latest","jitter":0,"job":{"argv":["sh","-c","echo often >> ran"],"retries":3,"retry_base":"10s"},"overlap":"skip","params":{},"rule":{"anchor":1794923255377382,"every":72000000000},"template":null,"window":86400000000}', 1, 1, '@HOST@', 1794923255377382, 'tester', 1794923255377382, 1794995255377382, 1794995255377382, 1794923255377382, '2025b', NULL, NULL, NULL);
insert into schedules values (3, 'once', '{"agent":null,"catch_up":"latest","jitter":0,"job":{"argv":["sh","-c","echo once >> ran"],"retries":3,"retry_base":"10s"},"overlap":"skip","params":{},"rule":{"at":1794925055990570},"template":null,"window":259200000000}', 1, 1, '@HOST@', 1794923256012578, 'tester', 1794923256012578, 1794925055990570, 1794925055990570, 1794923256012578, '2025b', NULL, NULL, NULL);
insert into jobs_files values ('@HOST@', '6657ea7e6e24507632e4401952bb65626a792d62d8538277562712cf8e834e8a', 1794923256121627, NULL, '[{"allowed_tools":["Read","Grep","Glob"],"argv":[],"conditions":[],"cron":null,"enabled":true,"group":"local","interval":86400000000,"interval_active":null,"interval_idle":null,"line":2,"max_turns":10,"model":null,"name":"sweep","priority":0,"prompt":null,"resources":[],"run":"sweep","runner":null,"timeout":null,"timezone":"UTC","type":"script"},{"allowed_tools":["Read","Grep","Glob"],"argv":[],"conditions":["has_open_prs"],"cron":null,"enabled":true,"group":"remote","interval":86400000000,"interval_active":null,"interval_idle":null,"line":8,"max_turns":10,"model":null,"name":"review","priority":0,"prompt":null,"resources":[],"run":"chores:review","runner":null,"timeout":null,"timezone":"UTC","type":"script"},{"allowed_tools":["Read","Grep","Glob"],"argv":["sh","-c","echo tidy >> ran"],"conditions":[],"cron":"23 3 * * *","enabled":true,"group":"remote","interval":null,"interval_active":null,"interval_idle":null,"line":14,"max_turns":10,"model":null,"name":"tidy","priority":0,"prompt":null,"resources":[],"run":null,"runner":null,"timeout":null,"timezone":"UTC","type":"command"},{"allowed_tools":["Read","Grep","Glob"],"argv":[],"conditions":["gate_is_open"],"cron":null,"enabled":true,"group":"local","interval":86400000000,"interval_active":null,"interval_idle":null,"line":19,"max_turns":10,"model":null,"name":"closed","priority":0,"prompt":null,"resources":[],"run":"sweep","runner":null,"timeout":null,"timezone":"UTC","type":"script"}]', 1794923256121627, NULL, 1794923256501657);
insert into entries values ('@HOST@', 'sweep', NULL, 32, NULL, NULL, NULL, NULL, NULL, NULL);
insert into entries values ('@HOST@', 'review', NULL, 33, NULL, NULL, NULL, NULL, NULL, NULL);
insert into entries values ('@HOST@', 'tidy', NULL, NULL, NULL, NULL, 1794972180000000, NULL, NULL, NULL);
insert into entries values ('@HOST@', 'closed', NULL, NULL, NULL, NULL, 1794923256121627, 'condition gate_is_open does not hold', 1794923256501657, NULL);
insert into claims values (1, '066079223abf28615a479af570974b24', 'gone', 1, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/1', 1794923241848616, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (2, '066079223abf28cb3a494ba133e201ea', 'gone', 2, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/2', 1794923241848616, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (3, '066079223abf281ac258c9442ef24e2c', 'gone', 3, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/3', 1794923241848616, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (5, '066079223abf28ddc1c244de36909db1', 'gone', 4, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/5', 1794923241848616, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (6, '066079223abf286c97c8599ccddfe8a7', 'gone', 5, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/6', 1794923241848616, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (8, '066079224cbf5a6745c14dcd233e9d61', 'gone', 1, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/8', 1794923243028314, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (9, '066079225e502762386a3ed3aaeae8ac', 'gone', 1, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/9', 1794923244179495, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (11, '0660792285c370d329396fcba87c8b90', 'live', 1, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/run/hosts/77e259d1f2475f3466125782b8b40dd1', 1794923246764912, NULL, 0, NULL, '77e259d1f2475f3466125782b8b40dd1', 'type:function');
insert into claims values (12, '0660792285c3704b4c3ab39f99e51f1e', 'live', 2, 'worker-left', '@HOST@', '@PROJECT@/.headway', '00000000-0000-4000-8000-000000000000', '@PROJECT@/.headway/jobs/12', 1794923246764912, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (13, '0660792285c3706181a2e55a03588298', 'live', 3, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/13', 1794923246764912, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (14, '0660792285c370a76f7147e72a10ca91', 'live', 4, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/14', 1794923246764912, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (15, '0660792285c37007eb7cd8f94c363ea1', 'live', 5, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/15', 1794923246764912, NULL, 0, NULL, NULL, 'type:command');
insert into claims values (16, '066079228e2ea6d9c02fab5367865dab', 'live', 6, 'worker-left', '@HOST@', '@PROJECT@/.headway', '@BOOT@', '@PROJECT@/.headway/jobs/16', 1794923247316646, NULL, 0, NULL, NULL, 'type:command');
CREATE UNIQUE INDEX jobs_one_child_per_retry on jobs (retry_of) where retry_of is not null;
CREATE UNIQUE INDEX jobs_idempotency_key on jobs (idempotency_key) where idempotency_key is not null;
CREATE INDEX jobs_wake_at on jobs (wake_at) where wake_at is not null;
CREATE INDEX jobs_finished_at on jobs (finished_at) where finished_at is not null;
CREATE INDEX jobs_env on jobs (env_digest) where finished_at is null and env_digest is not null;
CREATE INDEX evidence_job on evidence (job_id);
CREATE INDEX edges_by_mark on edges (job_id, mark, ord);
CREATE INDEX edges_by_chain on edges (chain, mark);
CREATE INDEX waits_in_order on waits (topic, level desc, position, created_at, job_id);
CREATE INDEX waits_reserving on waits (topic, mode, level desc, position, created_at, job_id)
  where reserves = 1;
CREATE INDEX waits_by_job on waits (job_id);
CREATE INDEX held_locks_job on held_locks (job_id);
CREATE INDEX lendings_job on lendings (job_id);
CREATE INDEX workers_started_at on workers (host_id, started_at);
CREATE TRIGGER runs_are_audit_records
  before update of job_id, started_at, worker_id, params_snapshot on runs
begin
  select raise(abort, 'headway: Cannot modify immutable fields of a run');
end;
CREATE TRIGGER events_are_append_only before update on events
begin
  select raise(abort, 'headway: events are append-only');
end;
CREATE TRIGGER runs_stay_with_their_job before delete on runs
  when old.status is not null and exists (select 1 from jobs where id = old.job_id)
begin
  select raise(abort, 'headway: a finished run is final');
end;
CREATE INDEX jobs_checked_at on jobs (queue, checked_at) where checked_at is not null;
CREATE INDEX jobs_cancelling on jobs (cancel_requested_at)
  where cancel_requested_at is not null and finished_at is null;
CREATE INDEX jobs_to_approve on jobs (created_at, id)
  where approval is not null and finished_at is null;
CREATE INDEX needs_by_job on needs (job_id);
CREATE INDEX produces_by_chain on produces (chain);
CREATE INDEX produces_by_job on produces (job_id);
CREATE INDEX artifacts_by_job on artifacts (job_id);
CREATE INDEX withdrawals_by_chain on withdrawals (chain);
CREATE INDEX worktrees_kept on worktrees (job_id) where state <> 'cleaned';
CREATE INDEX jobs_blocked on jobs (created_at, id)
  where status = 'blocked_by_dependency' or status = 'blocked_by_approval';
CREATE INDEX edges_failed on edges (job_id) where mark = 'failed';
CREATE INDEX jobs_dispatch on jobs (stage, queue, level desc, position, created_at, id)
  where stage is not null;
CREATE INDEX jobs_group on jobs (group_id, sequence_number, id) where group_id is not null;
CREATE INDEX jobs_group_active on jobs (group_id, sequence_number)
  where group_id is not null and finished_at is null;
CREATE INDEX jobs_group_failed on jobs (group_id, sequence_number) where group_id is not null
  and finished_at is not null and status <> 'succeeded' and status <> 'skipped';
CREATE UNIQUE INDEX jobs_one_open_per_subject on jobs (subject)
  where subject is not null and finished_at is null;
CREATE INDEX jobs_subject on jobs (subject, id) where subject is not null;
CREATE INDEX jobs_struck on jobs (id) where launch_wait is not null and finished_at is null;
CREATE INDEX jobs_circuit_broken on jobs (finished_at)
  where substr(reason, 1, 15) = 'circuit-broken:';
CREATE INDEX waits_limits on waits (topic) where substr(topic, 1, 6) = 'limit:';
CREATE INDEX job_groups_name on job_groups (name, id) where name is not null;
CREATE INDEX job_groups_subject on job_groups (subject, id) where subject is not null;
CREATE UNIQUE INDEX reservations_token on reservations (token);
CREATE UNIQUE INDEX targets_prefix on targets (prefix) where prefix is not null;
CREATE INDEX events_about_none on events (at) where job_id is null;
CREATE TRIGGER events_stay_with_their_job before delete on events
  when exists (select 1 from jobs where id = old.job_id) or old.job_id is null
    and old.at > (select at from events order by seq desc limit 1) - 86400000000
begin
  select raise(abort, 'headway: events are append-only');
end;
CREATE INDEX jobs_schedule on jobs (schedule_id, id) where schedule_id is not null;
CREATE INDEX jobs_schedule_active on jobs (schedule_id, id)
  where schedule_id is not null and finished_at is null;
CREATE UNIQUE INDEX schedules_name on schedules (name);
CREATE INDEX schedules_due on schedules (next_fire_at, id) where next_fire_at is not null;
CREATE INDEX firings_at on firings (at);
CREATE UNIQUE INDEX claims_one_live_per_slot on claims (slot) where state = 'live';
CREATE INDEX claims_unproven on claims (job_id) where state = 'ended';
CREATE INDEX edges_pending on edges (chain) where mark = 'pending';
CREATE TRIGGER jobs_terminal_is_final after update on jobs when old.finished_at is not null
begin
  select raise(abort, 'headway: a terminal job is final');
end;
CREATE TRIGGER jobs_params_are_frozen after update of params on jobs
  when old.status = 'running' and old.params is not new.params
begin
  select raise(abort, 'headway: Cannot modify params');
end;
CREATE TRIGGER runs_terminal_is_final after update on runs when old.status is not null
begin
  select raise(abort, 'headway: a finished run is final');
end;
CREATE INDEX jobs_chain on jobs (chain, id) where chain <> id;
CREATE INDEX jobs_in_line on jobs (level desc, position)
  where stage is not null and queue <> 'functions';
CREATE VIEW active as
select id from jobs where stage is not null
union all select job_id from claims where state = 'live';
CREATE VIEW in_line as
select id, level, position, created_at from jobs where stage is not null and queue <> 'functions'
union all
select id, level, position, created_at from jobs where stage = 'woken' and queue = 'functions'
union all
select id, level, position, created_at from jobs where stage = 'ready' and queue = 'functions'
union all
select id, level, position, created_at from jobs where stage = 'filed' and queue = 'functions';
CREATE INDEX events_job on events (job_id, seq) where job_id is not null and apart is null;
CREATE TRIGGER jobs_take_their_first_event after delete on jobs when old.first_event is not null
begin
  delete from events where seq = old.first_event;
end;
