-- Loops of workflow runs, and nodes whose instances are made while a run goes on.

-- One row for each node that may go back. `takes` are the outcomes that call the loop; `ended` says why it goes
-- back no more.
create table workflow_loops (
  run    bigint not null,
  source text not null,
  head   text not null,
  takes  text not null,
  tolerates text not null,
  times  bigint not null,
  delay  bigint not null,
  used   bigint not null,
  called bigint not null,
  ended  text,
  primary key (run, source)
);

-- `within`: the heads of the loops around a node. `open`: one of these is not over. A `fan` makes the other
-- instances of its node. What is `dismissed` counts no more, because its fan runs again.
alter table workflow_nodes add column pass bigint not null default 1;
alter table workflow_nodes add column within text;
alter table workflow_nodes add column open bigint not null default 0;
alter table workflow_nodes add column fan bigint not null default 0;
alter table workflow_nodes add column dismissed bigint not null default 0;

create index workflow_nodes_active on workflow_nodes (run) where outcome is null and dismissed = 0;

-- A run is unsettled while a step of a worker has to look at its loops. The mark says whether there is such a run.
alter table workflow_runs add column unsettled bigint not null default 0;
create index workflow_runs_unsettled on workflow_runs (id) where unsettled = 1;
insert into marks (name, value) values ('unsettled_runs', 0);
