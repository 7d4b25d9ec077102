-- The schedule shows blocked jobs and what blocks them: few among the many that ended.

create index jobs_blocked on jobs (created_at, id)
  where status = 'blocked_by_dependency' or status = 'blocked_by_approval';
create index edges_failed on edges (job_id) where mark = 'failed';
