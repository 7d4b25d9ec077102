-- name: targets
select name, prefix, document, created_at, created_by from targets order by name

-- name: add_target
insert into targets (name, prefix, document, created_at, created_by)
values (:name, :prefix, :document, :at, :by) on conflict do nothing

-- name: remove_target
delete from targets where name = :name

-- name: open_about (hot)
select $JOB from jobs where subject in $TEXTS(:subjects) and subject is not null and finished_at is null

-- name: open_with_subject
select $JOB from jobs where subject is not null and finished_at is null
order by level desc, position, created_at, id limit :limit

-- name: places_in_queue
select id, place from (
  select id, subject, row_number() over (order by level desc, position, created_at, id) as place
  from jobs where stage in ('woken', 'ready')) as queued
where subject is not null

-- name: groups_tracking
-- By what they were slung from, and by the subjects of their members.
select subject, max(id) from job_groups where subject in $TEXTS(:subjects) and ended_at is null
group by subject
union all
select jobs.subject, max(job_groups.id) from jobs join job_groups on job_groups.id = jobs.group_id
where jobs.subject in $TEXTS(:subjects) and jobs.subject is not null and job_groups.ended_at is null
group by jobs.subject

-- name: take_tracking_group
update marks set value = value + 1 where name = 'next_group_id' returning value - 1

-- name: add_tracking_group
insert into job_groups (id, mode, on_failure, subject, created_at, created_by, closed_at)
values (:id, 'parallel', 'continue', :subject, :at, :by, :at)

-- name: last_in_group
select coalesce(max(sequence_number), 0) from jobs where group_id = :group_id

-- name: track
update jobs set group_id = :group_id, sequence_number = :number where id = :id
