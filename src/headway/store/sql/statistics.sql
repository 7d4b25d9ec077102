-- Numbers over time, for pictures. Each query reads a bounded number of rows, by an index.

-- name: ended_since (hot)
-- The newest :most of those that ended since then: how, and the instants of their lives. Slots below zero are
-- places for entries of the jobs file.
select status, created_at, not_before, started_at, finished_at,
  (select slot from claims where claims.job_id = jobs.id)
from jobs where finished_at >= :since order by finished_at desc limit :most

-- name: count_ended_since (hot)
-- How many ended in each stretch of :width before :until, of the newest :most.
select given.place, count(*) from (
  select (finished_at - :since) / :width as place from jobs
  where finished_at >= :since and finished_at < :until order by finished_at desc limit :most) as given
group by given.place

-- name: running_since (hot)
-- The same of what runs.
select 'running', jobs.created_at, jobs.not_before, jobs.started_at, null, claims.slot
from claims join jobs on jobs.id = claims.job_id where claims.state = 'live' limit :most

-- name: waiting_since (hot)
-- Of those that wait, :most at most, how many were made in each stretch of :width; -1: before all.
select given.place, count(*) from (
  select case when created_at < :since then -1 else (created_at - :since) / :width end as place
  from jobs where stage is not null limit :most) as given
group by given.place

-- name: lasts_of_schedule (hot)
-- The newest jobs of a schedule that nobody retried.
select $JOB from jobs where schedule_id = :schedule and schedule_id is not null
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
order by id desc limit :limit

-- name: runs_of_schedule (hot)
-- The newest runs of a schedule that starts a workflow, among its newest :most jobs.
select $WORKFLOW_RUN from workflow_runs where id in (
  select nodes.run from workflow_nodes nodes where nodes.chain in (
    select chain from jobs where schedule_id = :schedule and schedule_id is not null
    order by id desc limit :most))
order by id desc limit :limit

-- name: runs_of_workflow (hot)
-- The newest runs of a workflow, among those from a number on.
select $WORKFLOW_RUN from workflow_runs where id >= :low and name = :name
order by id desc limit :limit

-- name: newest_run (hot)
select max(id) from workflow_runs

-- name: jobs_named (hot)
-- The newest jobs of this name that nobody retried, among those from a number on.
select $JOB from jobs where id >= :low and name = :name
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
order by id desc limit :limit

-- name: agents_ended_since (hot)
-- Agents of no workflow run, among the newest :most jobs that ended since then; the last to end first.
select id, finished_at from jobs
where id in (select id from jobs where finished_at >= :since order by finished_at desc limit :most)
  and type = 'agent' and started_at is not null and $ALONE
order by finished_at desc

-- name: spent_since (hot)
-- What the agents of runs used that ended since then or go on, the newest :limit.
select ended_at, usd_spent, tokens_spent from workflow_runs
where ended_at >= :since and usd_spent + tokens_spent > 0
union all
select null, usd_spent, tokens_spent from workflow_runs
where ended_at is null and usd_spent + tokens_spent > 0
limit :limit

-- name: chains_of_run (hot)
-- The instances of all nodes that a run ever had, :limit at most, in the order of the file.
select chain, node, written, pass from workflow_nodes where run = :run order by ord limit :limit

-- name: chains_of_group (hot)
-- Its members, :limit at most, in their order.
select chain from jobs where group_id = :group_id group by chain
order by min(sequence_number), chain limit :limit

-- name: lives_of_chains (hot)
-- The jobs of these chains, :limit at most, the last one last.
select id, chain, name, status, created_at, started_at, finished_at from jobs
where $CHAIN(jobs., in $IDS(:chains)) order by chain, id limit :limit

-- name: waits_of_jobs (hot)
-- How each job waited, was started and came back: the events of its queue, :limit at most.
select job_id, at, kind, data from events where job_id in $IDS(:ids) and apart is null
  and kind in ('queued', 'waiting_on_deps', 'waiting_on_locks', 'waiting_on_approval', 'running', 'unclaimed')
order by job_id, seq limit :limit
