-- Runs of workflows. A node of a run is a chain. Its outcome stands beside the status of the chain's last
-- job, and there is none while that is active.

create table workflow_runs (
  id          $ID,
  name        text not null,
  version     text not null,
  policy_hash text not null,
  manifest    text not null,
  params      text not null,
  run_key     text,
  created_at  bigint not null,
  created_by  text not null,
  deadline    bigint,
  stopped_at  bigint,
  stopped_by  text,
  ended_at    bigint,
  state       text not null
);
create unique index workflow_runs_key on workflow_runs (run_key) where run_key is not null;
create index workflow_runs_due on workflow_runs (deadline) where deadline is not null and ended_at is null;
create index workflow_runs_ended on workflow_runs (ended_at, id);

-- `node` is an instance; `written` is the node as the file has it.
create table workflow_nodes (
  run     bigint not null,
  ord     bigint not null,
  node    text not null,
  written text not null,
  chain   bigint not null,
  outcome text,
  primary key (run, ord)
);
create index workflow_nodes_by_name on workflow_nodes (run, written);
create index workflow_nodes_by_chain on workflow_nodes (chain);

-- When the next run is to be stopped because its time is over; 0: none.
insert into marks (name, value) values ('next_workflow_run_id', 1), ('next_run_deadline', 0);
