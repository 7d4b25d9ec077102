-- One plain call after another in the same slot of the same process: for a single one what calls.sql says
-- of many. Each of these changes what it names, or none of them may.

-- name: pass_claim_on (hot)
-- The worker, the process and the slot stay what they are.
update claims set job_id = :next_id, token = :next_token, claimed_at = :at
where job_id = :job_id and token = :token and state = 'live'

-- name: end_run_of_call (hot)
update runs set status = 'COMPLETED', exit_code = 0, finished_at = :finished_at
where job_id = :job_id and status is null

-- name: end_call (hot)
update jobs set status = 'succeeded', finished_at = :finished_at
where id = :job_id and status = 'running'

-- name: start_next_call (hot)
update jobs set status = 'running', stage = null, started_at = :at
where id = :next_id and stage is not null

-- name: add_run_of_next_call (hot)
insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts)
select id, :at, :worker_id, params, '[]' from jobs where id = :next_id

-- name: tell_passed_on
insert into events (at, actor, kind, job_id, data)
values (:at, :worker_id, 'succeeded', :job_id, :ended), (:at, :worker_id, 'running', :next_id, :started)

-- name: keep_result_of_call
insert into results (job_id, value) values (:job_id, :result) on conflict (job_id) do nothing

-- name: ready_calls_besides (hot)
-- As `ready` of functions, without those whose task is among these; so far from the head at most.
select $JOB from (
  select * from jobs where stage = 'ready' and queue = 'functions'
  order by level desc, position, created_at, id limit :window
) as head where not (params ->> '$.task' in $TEXTS(:keys))
order by level desc, position, created_at, id limit :limit
