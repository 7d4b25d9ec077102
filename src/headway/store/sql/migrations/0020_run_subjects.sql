-- A run of a workflow may be about a subject, as a job may: it holds it until it ends, for all its jobs, which have
-- the subject, too. `target` is what it was slung to.
alter table workflow_runs add column subject text;
alter table workflow_runs add column target text;

-- Nobody works on one thing twice at a time. Jobs of a run do not hold their subject themselves; the key `run` in
-- their gates says whose they are. That a job and a run never hold the same is checked by those who add them.
drop index jobs_one_open_per_subject;
create unique index jobs_one_open_per_subject on jobs (subject)
  where subject is not null and finished_at is null
  and replace(coalesce(gates, ''), '"run":', '') = coalesce(gates, '');
create unique index workflow_runs_one_open_per_subject on workflow_runs (subject)
  where subject is not null and ended_at is null;
