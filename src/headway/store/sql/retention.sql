-- Ended jobs go when nobody refers to them any more: what is asked before, and what is deleted then.

-- name: finished_page (hot)
-- The next :limit ended jobs after a place in the order of their ends, and whether each is the last
-- of its chain.
select page.finished_at, page.id, page.chain,
  case when exists (select 1 from jobs later where $CHAIN(later., = page.chain) and later.id > page.id)
    then 0 else 1 end
from (select finished_at, id, chain from jobs
      where finished_at >= :at and finished_at < :until and (finished_at > :at or id > :id)
      order by finished_at, id limit :limit) page
order by page.finished_at, page.id

-- name: nth_newest_finished
select finished_at, id from jobs where finished_at is not null
order by finished_at desc, id desc limit 1 offset :skipped

-- name: members_of_chains (hot)
select id, chain from jobs where $CHAIN(jobs., in $IDS(:chains)) order by id

-- name: active_after (hot)
-- Whether the edge is satisfied or not: the active job's own record names these.
select edges.chain, min(edges.job_id) from edges
join jobs on jobs.id = edges.job_id and jobs.finished_at is null
where edges.chain in $IDS(:chains) group by edges.chain

-- name: active_in_need
select needs.artifact, min(needs.job_id) from needs
join jobs on jobs.id = needs.job_id and jobs.finished_at is null
where needs.artifact in $TEXTS(:keys) group by needs.artifact

-- name: waiting_for_chains (hot)
select chain, job_id from lendings where chain in $IDS(:chains)

-- name: unproven_members (hot)
select jobs.chain, min(jobs.id) from jobs
join claims on claims.job_id = jobs.id and claims.state in ('live', 'ended')
where $CHAIN(jobs., in $IDS(:chains)) group by jobs.chain

-- name: members_with_locks (hot)
select jobs.chain, min(jobs.id) from jobs
join held_locks on held_locks.job_id = jobs.id
where $CHAIN(jobs., in $IDS(:chains)) group by jobs.chain

-- name: members_with_worktrees
select jobs.chain, min(jobs.id) from jobs
join worktrees on worktrees.job_id = jobs.id and worktrees.state <> 'cleaned'
where $CHAIN(jobs., in $IDS(:chains)) group by jobs.chain

-- name: note_files (hot)
-- changes: removals
insert into removals (host_id, job_id) select :host_id, id from jobs where id in $IDS(:ids)
on conflict do nothing

-- name: note_files_of_claims (hot)
-- changes: removals
insert into removals (host_id, job_id) select host_id, job_id from claims where job_id in $IDS(:ids)
on conflict do nothing

-- name: note_files_of_queues (hot)
-- changes: removals
insert into removals (host_id, job_id)
select queue, id from jobs where id in $IDS(:ids) and queue in (select id from hosts)
on conflict do nothing

-- name: files_to_remove (hot)
select job_id from removals where host_id = :host_id and job_id > :job_id
order by job_id limit :limit

-- name: files_removed (hot)
-- changes: removals
delete from removals where host_id = :host_id and job_id in $IDS(:ids)

-- name: keep_ids (hot)
-- changes: marks
-- Those that were given out are not given out again when their jobs are gone.
update marks set value = (select max(id) + 1 from jobs)
where name = 'next_job_id' and value <= (select max(id) from jobs)

-- name: remove_jobs (hot)
-- changes: jobs
delete from jobs where id in $IDS(:ids) and finished_at is not null

-- name: remove_runs (hot)
-- changes: runs
delete from runs where job_id in $IDS(:ids)

-- name: remove_claims (hot)
-- changes: claims
delete from claims where job_id in $IDS(:ids)

-- name: remove_evidence (hot)
-- changes: evidence
delete from evidence where job_id in $IDS(:ids)

-- name: remove_edges (hot)
-- changes: edges
delete from edges where job_id in $IDS(:ids)

-- name: remove_waits (hot)
-- changes: waits
delete from waits where job_id in $IDS(:ids)

-- name: remove_results (hot)
-- changes: results
delete from results where job_id in $IDS(:ids)

-- name: remove_progress (hot)
-- changes: progress
delete from progress where job_id in $IDS(:ids)

-- name: remove_steps (hot)
-- changes: steps
-- A chain has the number of its first job.
delete from steps where chain in $IDS(:ids)

-- name: remove_events (hot)
-- changes: events
-- But for those that went with their jobs.
delete from events where job_id in $IDS(:ids) and apart is null

-- name: remove_needs (hot)
-- changes: needs
delete from needs where job_id in $IDS(:ids)

-- name: remove_produces (hot)
-- changes: produces
delete from produces where job_id in $IDS(:ids)

-- name: remove_artifacts (hot)
-- changes: artifacts
delete from artifacts where job_id in $IDS(:ids)

-- name: remove_worktrees (hot)
-- changes: worktrees
delete from worktrees where job_id in $IDS(:ids)

-- name: forget_events
-- changes: events
-- The oldest of those about no job. What is not a day older than the newest of all stays: the guard of
-- the table says so too.
delete from events where seq in (
  select seq from events where job_id is null and at < :before
    and at <= (select at from events order by seq desc limit 1) - 86400000000
  order by at limit :most)

-- name: forget_groups
-- changes: job_groups
-- Ended ones whose last member is gone, or that never had one.
delete from job_groups where id in (
  select id from job_groups where ended_at < :before
    and not exists (select 1 from jobs where jobs.group_id = job_groups.id)
  order by id limit :most)

-- name: members_of_unended_groups (hot)
select jobs.chain, min(jobs.id) from jobs
join job_groups on job_groups.id = jobs.group_id and job_groups.ended_at is null
where $CHAIN(jobs., in $IDS(:chains)) group by jobs.chain

-- name: groups_of_jobs (hot)
select distinct group_id from jobs where id in $IDS(:ids) and group_id is not null

-- name: remove_empty_groups (hot)
-- changes: job_groups
delete from job_groups where id in $IDS(:ids)
  and not exists (select 1 from jobs where jobs.group_id = job_groups.id)

-- name: nodes_of_unended_runs
select nodes.chain, min(nodes.chain) from workflow_nodes nodes
join workflow_runs on workflow_runs.id = nodes.run and workflow_runs.ended_at is null
where nodes.chain in $IDS(:chains) group by nodes.chain

-- name: workflow_runs_of_chains
select distinct run from workflow_nodes where chain in $IDS(:chains)

-- name: remove_nodes
-- changes: workflow_nodes
delete from workflow_nodes where chain in $IDS(:chains)

-- name: remove_empty_runs
-- changes: workflow_runs
-- A run, with its manifest, goes with its last job.
delete from workflow_runs where id in $IDS(:ids)
  and not exists (select 1 from workflow_nodes where workflow_nodes.run = workflow_runs.id)
