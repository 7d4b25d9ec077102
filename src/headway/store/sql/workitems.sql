-- name: targets
select name, prefix, document, created_at, created_by from targets order by name

-- name: add_target
-- changes: targets
insert into targets (name, prefix, document, created_at, created_by)
values (:name, :prefix, :document, :at, :by) on conflict do nothing

-- name: remove_target
-- changes: targets
delete from targets where name = :name

-- name: open_about (hot)
-- Those that hold their subject themselves.
select $JOB from jobs where subject in $TEXTS(:subjects) and subject is not null and finished_at is null
  and $ALONE

-- name: open_runs_about (hot)
select $WORKFLOW_RUN from workflow_runs
where subject in $TEXTS(:subjects) and subject is not null and ended_at is null

-- name: open_runs_with_subject
select $WORKFLOW_RUN from workflow_runs where subject is not null and ended_at is null order by id limit :limit

-- name: open_with_subject
select $JOB from jobs where subject is not null and finished_at is null and $ALONE
order by level desc, position, created_at, id limit :limit

-- name: open_with_subject_after
select $JOB from jobs where subject is not null and finished_at is null and $ALONE and id > :after
order by id limit :limit

-- name: places_in_queue
select id, place from (
  select id, subject, row_number() over (order by level desc, position, created_at, id) as place
  from jobs where stage in ('woken', 'ready')) as queued
where subject is not null

-- name: groups_tracking
-- Those that a sling makes: by what they were slung from, and by the subjects of their members.
select subject, max(id) from job_groups where subject in $TEXTS(:subjects) and ended_at is null
  and mode = 'parallel' and on_failure = 'continue' and name is null
group by subject
union all
select jobs.subject, max(job_groups.id) from jobs join job_groups on job_groups.id = jobs.group_id
where jobs.subject in $TEXTS(:subjects) and jobs.subject is not null and job_groups.ended_at is null
  and mode = 'parallel' and on_failure = 'continue' and job_groups.name is null
group by jobs.subject
