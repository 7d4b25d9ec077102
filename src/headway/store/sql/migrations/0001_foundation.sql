-- Jobs, their runs and claims, what waits for what, and the record of every transition.
--
-- Boring on purpose, so that one text serves both databases: bigint for numbers, instants
-- (microseconds UTC) and flags, text for words and JSON. $ID and $SERIAL are the two spellings of a
-- primary key (ids that we give, numbers that the database gives).

create table jobs (
  id                  $ID,
  name                text not null,
  type                text not null,
  status              text not null check (status in (
    'queued', 'waiting_on_deps', 'waiting_on_approval', 'waiting_on_locks', 'running', 'succeeded',
    'failed', 'skipped', 'cancelled', 'blocked_by_dependency', 'blocked_by_approval')),
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
  stage               text check (stage in ('woken', 'ready', 'filed')),
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
);
create unique index jobs_one_child_per_retry on jobs (retry_of) where retry_of is not null;
create unique index jobs_idempotency_key on jobs (idempotency_key) where idempotency_key is not null;
create index jobs_chain on jobs (chain, id);
create index jobs_dispatch on jobs (stage, priority desc, position, created_at, id)
  where stage is not null;
create index jobs_active on jobs (priority, position) where finished_at is null;
create index jobs_wake_at on jobs (wake_at) where wake_at is not null;
create index jobs_checked_at on jobs (checked_at) where checked_at is not null;
create index jobs_finished_at on jobs (finished_at) where finished_at is not null;
create index jobs_env on jobs (env_digest) where finished_at is null and env_digest is not null;

-- One run per job: the audit record of its one execution.
create table runs (
  job_id          $ID,
  started_at      bigint not null,
  worker_id       text not null,
  params_snapshot text not null,
  status          text check (status in ('COMPLETED', 'FAILED', 'SKIPPED')),
  exit_code       bigint,
  error           text,
  artifacts       text not null,
  finished_at     bigint
);

-- One try to start a job. `live` until the job is settled, `ended` until its process tree is proven
-- gone, then `gone`. The lease is for stores that several hosts share.
create table claims (
  token         text primary key,
  job_id        bigint not null,
  state         text not null check (state in ('live', 'ended', 'gone')),
  slot          bigint not null,
  worker_id     text not null,
  host_id       text not null,
  home          text not null,
  boot_id       text not null,
  folder        text not null,
  claimed_at    bigint not null,
  borrowed_from bigint,
  probe         bigint not null,
  lease_until   bigint
);
create unique index claims_one_live_per_job on claims (job_id) where state = 'live';
create unique index claims_one_live_per_slot on claims (slot) where state = 'live';
create index claims_unproven on claims (job_id) where state = 'ended';
create index claims_job on claims (job_id);

-- What a supervisor wrote about a claim beyond the run's own fields: signal, usage, log sizes. An
-- outcome that came after the verdict is kept as `late_outcome` and changes nothing.
create table evidence (
  token    text not null,
  kind     text not null check (kind in ('outcome', 'late_outcome')),
  job_id   bigint not null,
  at       bigint not null,
  document text not null,
  primary key (token, kind)
);
create index evidence_job on evidence (job_id);

-- `after` edges. The mark follows the state of the predecessor's chain.
create table edges (
  job_id   bigint not null,
  ord      bigint not null,
  declared bigint not null,
  chain    bigint not null,
  mark     text not null check (mark in ('pending', 'satisfied', 'failed')),
  primary key (job_id, ord)
);
create index edges_by_mark on edges (job_id, mark, ord);
create index edges_by_chain on edges (chain, mark);

-- What waiting jobs are filed under. Lock waiters carry their place in the dispatch order, so that
-- the first of them is found without looking at the others; `reserves` marks those that make later
-- jobs wait for them.
create table waits (
  topic      text not null,
  job_id     bigint not null,
  mode       text,
  reserves   bigint not null,
  priority   bigint not null,
  position   bigint not null,
  created_at bigint not null,
  primary key (topic, job_id)
);
create index waits_in_order on waits (topic, priority desc, position, created_at, job_id);
create index waits_reserving on waits (topic, mode, priority desc, position, created_at, job_id)
  where reserves = 1;
create index waits_by_job on waits (job_id);

create table held_locks (
  key    text not null,
  job_id bigint not null,
  mode   text not null,
  primary key (key, job_id)
);
create index held_locks_job on held_locks (job_id);

-- A running job that waits for a chain lends it what it holds, while it keeps renewing this row.
create table lendings (
  token      text primary key,
  job_id     bigint not null,
  chain      bigint not null,
  expires_at bigint not null
);
create index lendings_job on lendings (job_id);

create table events (
  seq    $SERIAL,
  at     bigint not null,
  actor  text not null,
  kind   text not null,
  job_id bigint,
  data   text not null
);
create index events_job on events (job_id, seq) where job_id is not null;

create table settings (
  key        text primary key,
  value      text not null,
  updated_at bigint not null,
  updated_by text not null
);

create table pauses (
  scope  text primary key,
  actor  text not null,
  reason text,
  at     bigint not null
);

create table breakers (
  host_id   text primary key,
  kind      text not null,
  cause     text not null,
  failures  bigint not null,
  probe_at  bigint not null,
  opened_at bigint not null
);

create table workers (
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
create index workers_started_at on workers (host_id, started_at);

-- Small facts about the store as a whole: the next id, the last dispatch, the bytes of all logs.
create table marks (
  name  text primary key,
  value bigint not null
);
insert into marks (name, value) values
  ('next_job_id', 1), ('last_dispatch_at', 0), ('last_dispatch_count', 0), ('log_bytes', 0),
  ('crashes_forgiven_at', 0);
