-- Plain calls on PostgreSQL: one statement for all that is written of a start, and one for all of an
-- end, so that each row is looked up once: what calls.sql says in four. Nothing is joined: of a set that is
-- a parameter the server knows no size, and would go through all of it for every row.

-- name: start_calls_at_once
-- changes: jobs, claims, runs, events (followed)
with given as materialized (
  select * from unnest(:ids::bigint[], :tokens::text[], :given_slot::bigint[]) as each(job_id, token, slot)
), started as (
  update jobs set status = 'running', stage = null, started_at = :at
  where id in $IDS(:ids) and stage is not null
  returning id, params
), claimed as (
  insert into claims (job_id, token, state, slot, worker_id, host_id, home, boot_id, folder, claimed_at,
    probe, lease_until, function_host, occupies)
  select given.job_id, given.token, 'live', given.slot, :worker_id, :host_id, :home, :boot_id, :folder,
    :at, 0, :lease_until, :function_host, :occupies from given
), run as (
  insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts)
  select id, :at, :worker_id, params, '[]' from started
)
insert into events (at, actor, kind, job_id, data)
select :at, :actor, 'running', given.job_id, '{"slot":' || given.slot || '}' from given

-- name: finish_calls_at_once
-- changes: claims, runs, jobs, events (followed)
with ended as (
  delete from claims
  where job_id in $IDS(:ids) and state <> 'ended' and state <> 'gone'
    and token = (:tokens::text[])[array_position(:ids::bigint[], job_id)]
  returning job_id, array_position(:ids::bigint[], job_id) as place
), run as (
  update runs set status = 'COMPLETED', exit_code = 0,
    finished_at = (:given_at::bigint[])[array_position(:ids::bigint[], job_id)]
  where job_id = any(array(select job_id from ended)) and status is null
), finished as (
  update jobs set status = 'succeeded',
    finished_at = (:given_at::bigint[])[array_position(:ids::bigint[], id)]
  where id = any(array(select job_id from ended)) and status = 'running'
)
insert into events (at, actor, kind, job_id, data)
select :at, :actor, 'succeeded', job_id,
  '{"attempt":' || (:given_attempt::bigint[])[place] || ',"exit_code":0}' from ended order by place

-- name: ready_calls_besides (hot)
-- As `ready` of functions, without those whose task is among these; so far from the head at most.
select $JOB from (
  select * from jobs where stage = 'ready' and queue = 'functions'
  order by level desc, position, created_at, id limit :window
) as head where not (split_part(split_part(params, '"task":"', -1), '"', 1) in $TEXTS(:keys))
order by level desc, position, created_at, id limit :limit
