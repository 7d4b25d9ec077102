-- Several hosts share one store: a job may belong to one of them, and stands in that host's queue.

alter table jobs add column queue text not null default '';  -- a host's id; '': any may start it

drop index jobs_dispatch;
create index jobs_dispatch on jobs (stage, queue, priority desc, position, created_at, id)
  where stage is not null;
drop index jobs_checked_at;
create index jobs_checked_at on jobs (queue, checked_at) where checked_at is not null;
create index jobs_cancelling on jobs (cancel_requested_at)
  where cancel_requested_at is not null and finished_at is null;
create index claims_leased on claims (host_id) where state = 'live';

-- The host id stands for one home on one machine; the names are for people.
create table hosts (
  id      text primary key,
  name    text not null,
  home    text not null,
  seen_at bigint not null
);
