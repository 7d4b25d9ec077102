-- Steps: what functions have recorded, for the retries of their chains.

-- name: keep_steps
-- changes: steps
-- What was recorded first under a key counts.
insert into steps (chain, pass, key, value, at)
select jobs.chain, :pass, :key, :value, :at from jobs where jobs.id = :job_id
on conflict do nothing

-- name: steps
select key, value from steps where chain = :chain and pass = :pass

-- name: forget_steps
-- changes: steps
delete from steps where chain in $IDS(:chains)
