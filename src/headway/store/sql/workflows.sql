-- Runs of workflows, and their nodes.

-- name: take_workflow_run_id
-- changes: marks
update marks set value = value + 1 where name = 'next_workflow_run_id' returning value - 1

-- name: add_workflow_run
-- changes: workflow_runs
insert into workflow_runs (id, name, version, policy_hash, manifest, params, run_key, created_at, created_by,
  deadline, stopped_at, stopped_by, ended_at, state, usd_budget, token_budget, subject, target)
values (:id, :name, :version, :policy_hash, :manifest, :params, :run_key, :created_at, :created_by,
  :deadline, null, null, null, 'running', :usd_budget, :token_budget, :subject, :target)

-- name: add_workflow_nodes
-- changes: workflow_nodes
insert into workflow_nodes (run, ord, node, written, chain, outcome, pass, within, open, fan, dismissed)
values (:run, :ord, :node, :written, :chain, null, :pass, :within, :open, :fan, 0)

-- name: next_node_order
select coalesce(max(ord), -1) + 1 from workflow_nodes where run = :run

-- name: add_workflow_loops
-- changes: workflow_loops
insert into workflow_loops (run, source, head, takes, tolerates, times, delay, used, called, ended)
values (:run, :source, :head, :takes, :tolerates, :times, :delay, 0, 0, null)

-- name: loops_of_run (hot)
select source, head, takes, tolerates, times, delay, used, called, ended from workflow_loops where run = :run
order by source

-- name: unsettled_runs (hot)
select $WORKFLOW_RUN from workflow_runs where unsettled = 1 order by id

-- name: set_unsettled (hot)
-- changes: workflow_runs
update workflow_runs set unsettled = :unsettled where id = :id

-- name: set_loop_count (hot)
-- changes: workflow_loops
update workflow_loops set used = :used, called = :called, ended = :ended
where run = :run and source = :source

-- name: stop_loops
-- changes: workflow_loops
update workflow_loops set called = 0 where run = :run and called = 1

-- name: reopen_loops
-- changes: workflow_loops
-- A person runs the source of these once more: they may go back as often as at first.
update workflow_loops set used = 0, called = 0, ended = null
where run = :run and source in $TEXTS(:keys)

-- name: body_nodes (hot)
-- The instances of nodes that have loops around them.
select nodes.written, nodes.chain, last.id, last.status, nodes.outcome, nodes.within, nodes.open, nodes.fan
from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run and nodes.within is not null and nodes.dismissed = 0 order by nodes.ord

-- name: close_bodies (hot)
-- changes: workflow_nodes
update workflow_nodes set open = 0 where chain in $IDS(:chains)

-- name: open_chains (hot)
-- Of these, the chains whose end does not count yet, each with the run whose loop may repeat it.
select chain, run from workflow_nodes where chain in $IDS(:chains) and open = 1

-- name: fans_of (hot)
-- The instances, of nodes that make them while a run goes on, whose fan is one of these chains.
select made.chain from workflow_nodes fan
join workflow_nodes made on made.run = fan.run and made.written = fan.written
where fan.chain in $IDS(:chains) and fan.fan = 1 and made.fan = 0 and made.dismissed = 0

-- name: fans_to_expand (hot)
-- The last jobs of fans that have succeeded and not made their instances yet.
select $JOB from jobs where id in (
  select last.id from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
  where nodes.run = :run and nodes.fan = 1 and nodes.outcome is null and nodes.dismissed = 0
    and last.status = 'succeeded') order by id

-- name: fans_behind
-- The fans that have made these instances.
select fan.chain from workflow_nodes made
join workflow_nodes fan on fan.run = made.run and fan.written = made.written and fan.fan = 1
where made.chain in $IDS(:chains) and made.fan = 0

-- name: dismiss_nodes
-- changes: workflow_nodes
update workflow_nodes set dismissed = 1, open = 0 where chain in $IDS(:chains)

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
select nodes.written, last.id, nodes.chain, last.status, nodes.outcome, nodes.fan
from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run and nodes.dismissed = 0 and nodes.written in $TEXTS(:keys) order by nodes.ord

-- name: last_end_of_nodes
select max(last.finished_at) from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run and nodes.dismissed = 0 and nodes.written in $TEXTS(:keys)

-- name: instances_of_nodes (hot)
-- The names of all instances that these nodes ever had, also of those that count no more, in order.
select written, node from workflow_nodes where run = :run and written in $TEXTS(:keys)
group by written, node order by min(ord)

-- name: nodes_of_run
-- All instances of all nodes, in the order of the file.
select nodes.node, nodes.written, nodes.chain, last.id, last.status, nodes.outcome, last.reason,
  last.started_at, last.finished_at, last.wait_kind, last.wait_detail, nodes.pass, nodes.fan
from workflow_nodes nodes join jobs last on last.id = $LAST(nodes.chain)
where nodes.run = :run and nodes.dismissed = 0 order by nodes.ord

-- name: outcomes_of_run (hot)
select written, outcome, fan from workflow_nodes where run = :run and dismissed = 0

-- name: runs_at_rest (hot)
-- Of these, the runs that have not ended, with no active node and no loop that a step has to look at.
select $WORKFLOW_RUN from workflow_runs where id in $IDS(:ids) and ended_at is null and unsettled = 0
  and not exists (select 1 from workflow_nodes nodes
                  where nodes.run = workflow_runs.id and nodes.outcome is null and nodes.dismissed = 0)
order by id

-- name: set_node_outcomes (hot)
-- changes: workflow_nodes
update workflow_nodes set outcome = :outcome where chain in $IDS(:chains)

-- name: reopen_nodes
-- changes: workflow_nodes
-- They begin another pass, and what leaves a loop around them waits again.
update workflow_nodes set outcome = null, pass = pass + 1,
  open = case when within is null then 0 else 1 end
where chain in $IDS(:chains)

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

-- name: outcomes_of_jobs (hot)
-- What the nodes came to whose last jobs are among these.
select jobs.id, nodes.outcome from jobs join workflow_nodes nodes on nodes.chain = jobs.chain
where jobs.id in $IDS(:ids) and jobs.id = $LAST(nodes.chain)

-- name: next_deadline (hot)
-- When the next run is to be stopped because its time is over.
select min(deadline) from workflow_runs
where deadline is not null and ended_at is null and stopped_at is null

-- name: runs_past_deadline
select $WORKFLOW_RUN from workflow_runs
where deadline <= :now and ended_at is null and stopped_at is null order by id

-- name: running_agents (hot)
-- The agents of a run that run now, and gates, which may call one; in the order of their start.
select $JOB from jobs where status = 'running' and type in ('agent', 'gate')
  and id in (select $LAST(nodes.chain) from workflow_nodes nodes where nodes.run = :run)
order by started_at, id

-- name: spend_of_run (hot)
-- changes: workflow_runs
update workflow_runs set usd_spent = usd_spent + :usd, tokens_spent = tokens_spent + :used where id = :id

-- name: set_run_budget
-- changes: workflow_runs
update workflow_runs set usd_budget = :usd where id = :id

-- name: set_run_tokens
-- changes: workflow_runs
update workflow_runs set token_budget = :most where id = :id
