-- Groups and their members. A member is a chain: its last job, the one that nobody retried, decides. An instance of a
-- workflow's node that is dismissed counts no more.

-- name: take_group_id
-- changes: marks
update marks set value = value + 1 where name = 'next_group_id' returning value - 1

-- name: add_group
-- changes: job_groups
insert into job_groups (id, name, mode, on_failure, subject, created_at, created_by, closed_at, ended_at)
values (:id, :name, :mode, :on_failure, :subject, :created_at, :created_by, :closed_at, :ended_at)

-- name: groups_by_id (hot)
select $GROUP from job_groups where id in $IDS(:ids)

-- name: groups_named (hot)
-- The newest first: a name may be used again when its group has ended.
select $GROUP from job_groups where name = :name order by id desc limit 1

-- name: groups_since
-- The newest :limit of those that have not ended, or did so since.
select $GROUP from job_groups where ended_at is null or ended_at >= :since order by id desc limit :limit

-- name: close_group (hot)
-- changes: job_groups
update job_groups set closed_at = :at where id = :id and closed_at is null

-- name: set_group_ended (hot)
-- changes: job_groups
update job_groups set ended_at = :at where id = :id and ended_at is null

-- name: reopen_groups (hot)
-- changes: job_groups
-- Members of these were rewound: the groups run again, and their end will be told again.
update job_groups set ended_at = null where ended_at is not null
  and id in (select group_id from jobs where $CHAIN(jobs., in $IDS(:chains)))

-- name: last_in_group (hot)
select max(sequence_number) from jobs where group_id = :group_id

-- name: active_in_group (hot)
select 1 from jobs where group_id = :group_id and finished_at is null limit 1

-- name: unsettled_in_group (hot)
-- A run of the group whose loops or fans a step still has to look at: it may go on.
select 1 from workflow_runs join workflow_nodes nodes on nodes.run = workflow_runs.id
join jobs on jobs.id = nodes.chain
where workflow_runs.unsettled = 1 and jobs.group_id = :group_id limit 1

-- name: groups_of_run (hot)
-- Those that have not ended.
select $GROUP from job_groups where ended_at is null and id in (
  select jobs.group_id from workflow_nodes nodes join jobs on jobs.id = nodes.chain where nodes.run = :run)

-- name: tally_group
select status, count(*) from jobs where group_id = :group_id
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
  and not exists (select 1 from workflow_nodes nodes where nodes.chain = jobs.chain and nodes.dismissed = 1)
group by status

-- name: ran_in_group
select 1 from jobs where group_id = :group_id and started_at is not null limit 1

-- name: members_of_group
select chain, id, sequence_number, status from jobs where group_id = :group_id
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
  and not exists (select 1 from workflow_nodes nodes where nodes.chain = jobs.chain and nodes.dismissed = 1)
order by sequence_number, id limit :limit

-- name: waiting_in_group (hot)
select $JOB from jobs where group_id = :group_id and finished_at is null
  and sequence_number > :sequence_number and stage is not null
order by sequence_number

-- name: failed_in_group (hot)
-- The first member whose chain has ended without success; before those that were cancelled for it.
select $JOB from jobs where group_id = :group_id
  and finished_at is not null and status <> 'succeeded' and status <> 'skipped'
  and not exists (select 1 from jobs later where later.retry_of = jobs.id)
order by case status when 'cancelled' then 1 else 0 end, sequence_number limit 1

-- name: turn_in_group (hot)
-- The nearest of those before it that has not ended, where they go one by one.
select chain from jobs where group_id = :group_id and finished_at is null
  and sequence_number < :sequence_number
  and exists (select 1 from job_groups where job_groups.id = :group_id and mode = 'sequential')
order by sequence_number desc limit 1

-- name: last_turns
-- The sequential groups of these jobs, and the last place that one of them has there.
select jobs.group_id, max(jobs.sequence_number) from jobs
join job_groups on job_groups.id = jobs.group_id and job_groups.mode = 'sequential'
where jobs.id in $IDS(:ids) group by jobs.group_id

-- name: turns_until
-- The members that have not ended, up to a place, in the order of their turns.
select id from jobs where group_id = :group_id and finished_at is null
  and sequence_number <= :sequence_number
order by sequence_number

-- name: chains_behind (hot)
-- Those whose turn comes after that of one of these chains, active or ended. One look at each group,
-- from the first of them on.
select distinct jobs.chain
from (select group_id, min(sequence_number) as first from jobs
      where $CHAIN(jobs., in $IDS(:chains)) and group_id is not null group by group_id) as given
join job_groups on job_groups.id = given.group_id and job_groups.mode = 'sequential'
join jobs on jobs.group_id = given.group_id and jobs.sequence_number > given.first
order by jobs.chain

-- name: chains_before (hot)
-- The same in the other direction.
select distinct jobs.chain
from (select group_id, max(sequence_number) as last from jobs
      where $CHAIN(jobs., in $IDS(:chains)) and group_id is not null group by group_id) as given
join job_groups on job_groups.id = given.group_id and job_groups.mode = 'sequential'
join jobs on jobs.group_id = given.group_id and jobs.sequence_number < given.last
order by jobs.chain

-- name: join_group (hot)
-- changes: jobs
update jobs set group_id = :group_id, sequence_number = :sequence_number
where id = :id and stage is not null and group_id is null
