-- Webhooks: endpoints, URLs that jobs brought along, and what is to be sent to them. The events are the outbox.

-- `since`: it gets the events after this one. `holders`: the hosts that have its secret. `held_until`: nothing is
-- sent before; a paused one that has it tries one delivery then.
create table endpoints (
  id              $ID,
  name            text not null,
  url             text not null,
  types           text not null,
  schedule        text not null,
  state           text not null check (state = 'active' or state = 'paused' or state = 'disabled'),
  reason          text,
  since           bigint not null,
  fingerprint     text not null,
  old_fingerprint text,
  overlap_until   bigint,
  holders         text not null,
  failures        bigint not null,
  failing_since   bigint,
  held_until      bigint,
  created_at      bigint not null,
  created_by      text not null,
  changed_at      bigint not null
);
create unique index endpoints_name on endpoints (name);

-- All URLs of jobs are signed with one secret, that of this row. It has no URL itself.
insert into endpoints (id, name, url, types, schedule, state, since, fingerprint, holders, failures, created_at,
  created_by, changed_at)
values (0, '(jobs)', '', '[]', 'quick', 'active', 0, '', '[]', 0, 0, '', 0);

-- A row goes once the end of its chain was made a delivery of, and comes back with a retry.
create table job_webhooks (
  chain bigint not null,
  url   text not null,
  types text not null,
  primary key (chain, url)
);

-- `receiver`: few are sent at once to an endpoint, or to one origin of jobs' own URLs. `due_at`: when it is sent next;
-- while it is leased, the end of the lease. `url` is that of a job's own.
create table deliveries (
  id            text primary key,
  endpoint      bigint not null,
  receiver          text not null,
  url           text,
  type          text not null,
  seq           bigint not null,
  job_id        bigint,
  chain         bigint,
  state         text not null check (state = 'pending' or state = 'delivered' or state = 'failed'),
  tries         bigint not null,
  due_at        bigint not null,
  created_at    bigint not null,
  waiting_since bigint not null,
  tried_at      bigint,
  status_code   bigint,
  error         text,
  ended_at      bigint,
  lease         text,
  body          text not null
);
create index deliveries_due on deliveries (receiver, due_at) where state = 'pending';
create index deliveries_by_state on deliveries (state, created_at, endpoint);
create index deliveries_by_chain on deliveries (chain) where chain is not null;

-- The events up to this one were made deliveries of; -1: nobody is to be told.
-- The last restore began a new epoch of events; those up to this number were numbered in the one before.
insert into marks (name, value) values ('webhook_cursor', -1), ('next_endpoint_id', 1),
  ('earlier_epoch', 0), ('earlier_epoch_until', 0);
