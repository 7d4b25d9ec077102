-- Runs of workflows, and their nodes.

-- name: take_workflow_run_id
-- changes: marks
update marks set value = value + 1 where name = 'next_workflow_run_id' returning value - 1

-- name: add_workflow_run
-- changes: workflow_runs
insert into workflow_runs (id, name, version, policy_hash, manifest, params, run_key, created_at, created_by,
  deadline, stopped_at, stopped_by, ended_at, state)
values (:id, :name, :version, :policy_hash, :manifest, :params, :run_key, :created_at, :created_by,
  :deadline, null, null, null, 'running')

-- name: add_workflow_nodes
-- changes: workflow_nodes
insert into workflow_nodes (run, ord, node, written, chain, outcome)
values (:run, :ord, :node, :written, :chain, null)

-- name: workflow_runs_by_id
select $WORKFLOW_RUN from workflow_runs where id in $IDS(:ids)

-- name: workflow_run_by_key
select $WORKFLOW_RUN from workflow_runs where run_key = :run_key

-- name: workflow_runs_since
-- The newest :limit of those that have not ended, or did so since.
select $WORKFLOW_RUN from workflow_runs where ended_at is null or ended_at >= :since
order by id desc limit :limit

-- name: workflow_run_manifest
select manifest from workflow_runs where id = :id

-- name: node_ends (hot)
-- How each instance of these nodes stands: by the last job of its chain.
select nodes.written, last.id, nodes.chain, last.status, nodes.outcome
from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run and nodes.written in $TEXTS(:keys) order by nodes.ord

-- name: nodes_of_run
-- All instances of all nodes, in the order of the file.
select nodes.node, nodes.written, nodes.chain, last.id, last.status, nodes.outcome, last.reason,
  last.started_at, last.finished_at, last.wait_kind, last.wait_detail
from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run order by nodes.ord

-- name: outcomes_of_run (hot)
select written, outcome from workflow_nodes where run = :run

-- name: set_node_outcome (hot)
-- changes: workflow_nodes
update workflow_nodes set outcome = :outcome where chain = :chain

-- name: reopen_nodes
-- changes: workflow_nodes
update workflow_nodes set outcome = null where chain in $IDS(:chains)

-- name: reopen_workflow_runs
-- changes: workflow_runs
-- Nodes of these were rewound: the runs go on, and a stop is forgotten.
update workflow_runs set ended_at = null, state = 'running', stopped_at = null, stopped_by = null
where id in (select run from workflow_nodes where chain in $IDS(:chains))
returning id, deadline

-- name: set_run_deadline
-- changes: workflow_runs
update workflow_runs set deadline = :deadline where id = :id

-- name: end_workflow_run (hot)
-- changes: workflow_runs
update workflow_runs set ended_at = :at, state = :state where id = :id and ended_at is null

-- name: stop_workflow_run
-- changes: workflow_runs
update workflow_runs set stopped_at = :at, stopped_by = :by
where id = :id and ended_at is null and stopped_at is null

-- name: active_of_run
-- The jobs of a run that have not ended.
select $JOB from jobs where finished_at is null
  and id in (select $LAST(nodes.chain) from workflow_nodes nodes where nodes.run = :run)
order by id

-- name: outcomes_of_chains
select chain, outcome from workflow_nodes where chain in $IDS(:chains)

-- name: next_deadline (hot)
-- When the next run is to be stopped because its time is over.
select min(deadline) from workflow_runs
where deadline is not null and ended_at is null and stopped_at is null

-- name: runs_past_deadline
select $WORKFLOW_RUN from workflow_runs
where deadline <= :now and ended_at is null and stopped_at is null order by id
