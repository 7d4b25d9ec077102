-- Budgets of workflow runs, and runners of coding agents that are parked.

-- What all agents of a run together may use, and have used; money in millionths of a dollar.
alter table workflow_runs add column usd_budget bigint;
alter table workflow_runs add column token_budget bigint;
alter table workflow_runs add column usd_spent bigint not null default 0;
alter table workflow_runs add column tokens_spent bigint not null default 0;

-- No job of a runner starts until then; without an instant, until a person resumes it. A row stays when its time is
-- over, until a job of the runner succeeds: a guess doubles what was guessed before.
create table parked (
  runner    text primary key,
  until     bigint,
  reason    text not null,
  parked_at bigint not null,
  job_id    bigint not null,
  guessed   bigint not null
);
