-- A job may be called by its slug: among active jobs, else the one that ended last.
create index jobs_by_slug on jobs (slug, finished_at) where slug is not null;
