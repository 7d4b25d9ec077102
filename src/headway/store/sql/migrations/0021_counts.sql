-- What waits is counted in one index, without its rows.
drop index jobs_dispatch;
create index jobs_dispatch on jobs (stage, queue, level desc, position, created_at, id, status)
  where stage is not null;
