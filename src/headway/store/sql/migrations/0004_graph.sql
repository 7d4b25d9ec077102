-- The job graph: artifacts that jobs produce and need, gates that look at a repository, approval, and
-- worktrees of jobs. An artifact is known by its key: its text, and after a space the place it belongs to
-- (a repository), if it has one.

alter table jobs add column gates text;     -- needs, produces, pin, preconditions as JSON; null: none
alter table jobs add column approval text;  -- null: nobody is asked
create index jobs_to_approve on jobs (created_at, id)
  where approval is not null and finished_at is null;

create table needs (
  artifact text not null,
  job_id   bigint not null,
  primary key (artifact, job_id)
);
create index needs_by_job on needs (job_id);

-- Who will have made it when it has succeeded.
create table produces (
  artifact text not null,
  job_id   bigint not null,
  chain    bigint not null,
  primary key (artifact, job_id)
);
create index produces_by_chain on produces (chain);
create index produces_by_job on produces (job_id);

-- The markers: that an artifact is there, by whom, and what it carries. A withdrawn one is evidence only.
create table artifacts (
  artifact     text not null,
  job_id       bigint not null,
  at           bigint not null,
  data         text,
  withdrawn_at bigint,
  primary key (artifact, job_id)
);
create index artifacts_by_job on artifacts (job_id);

-- A rewind withdraws what a chain has made: until the chain makes it again it counts as missing,
-- whatever a look at the file or the branch says.
create table withdrawals (
  artifact text not null,
  chain    bigint not null,
  at       bigint not null,
  primary key (artifact, chain)
);
create index withdrawals_by_chain on withdrawals (chain);

-- A job's own worktree. `owned` until it was cleaned away; `error` says why that did not succeed.
create table worktrees (
  job_id  $ID,
  repo    text not null,
  path    text not null,
  branch  text not null,
  base    text not null,
  state   text not null check (state in ('owned', 'degraded', 'cleaned')),
  error   text,
  at      bigint not null
);
create index worktrees_kept on worktrees (job_id) where state <> 'cleaned';

-- Jobs that were removed, whose files a host has still to delete.
create table removals (
  host_id text not null,
  job_id  bigint not null,
  primary key (host_id, job_id)
);

-- The schedule shows blocked jobs and what blocks them: few among the many that ended.

create index jobs_blocked on jobs (created_at, id)
  where status = 'blocked_by_dependency' or status = 'blocked_by_approval';
create index edges_failed on edges (job_id) where mark = 'failed';
