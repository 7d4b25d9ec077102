-- Checkpoints of functions: what each call recorded under a key, for the retries of its chain. A node of a
-- workflow has its own in each pass; all other jobs have pass 0.
create table steps (
  chain bigint not null,
  pass  bigint not null,
  key   text not null,
  value text not null,
  at    bigint not null,
  primary key (chain, pass, key)
);
