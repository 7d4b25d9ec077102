-- Runners of coding agents that are parked.

-- name: parked_runners (hot)
select runner, until, reason, parked_at, job_id, guessed from parked

-- name: park_runner (hot)
-- changes: parked
insert into parked (runner, until, reason, parked_at, job_id, guessed)
values (:runner, :until, :reason, :parked_at, :job_id, :guessed)
on conflict (runner) do update set until = excluded.until, reason = excluded.reason,
  parked_at = excluded.parked_at, job_id = excluded.job_id, guessed = excluded.guessed

-- name: resume_runner (hot)
-- changes: parked
delete from parked where runner = :runner
