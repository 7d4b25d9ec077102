-- Plain calls: many functions at a time, each of which needs nothing but a slot.

-- name: plain_calls (hot)
-- The head of their queue, and whether it is one; one that has waited may have more to be cleared away.
select id, attempt, chain, params,
  $SIMPLE
from jobs where stage = 'ready' and queue = 'functions'
order by level desc, position, created_at, id limit :limit

-- name: start_calls (hot)
-- changes: jobs (takes away)
update jobs set status = 'running', stage = null, started_at = :at
where id in $IDS(:ids) and stage is not null

-- name: claim_calls
-- changes: claims (followed)
insert into claims (job_id, token, state, slot, worker_id, host_id, home, boot_id, folder, claimed_at,
  probe, lease_until, function_host, occupies)
select given.job_id, given.token, 'live', given.slot, :worker_id, :host_id, :home, :boot_id, :folder,
  :at, 0, :lease_until, :function_host, :occupies
from $LISTS(:rows, job_id bigint, token text, slot bigint)

-- name: tell_calls_started
-- changes: events
insert into events (at, actor, kind, job_id, data)
select :at, :actor, 'running', given.job_id, '{"slot":' || cast(given.slot as text) || '}'
from $LISTS(:rows, job_id bigint, token text, slot bigint)

-- The ends, each fenced by the token of its claim, which is ended last. The instant of an end is in its
-- run; a run that has one belongs to a job that ends.

-- name: keep_results_of_calls
-- changes: results
insert into results (job_id, value)
select given.job_id, given.value from $LISTS(:rows, job_id bigint, token text, value text)
where exists (select 1 from claims where claims.job_id = given.job_id
              and claims.token = given.token and claims.state <> 'ended' and claims.state <> 'gone')
on conflict (job_id) do nothing

-- name: finish_runs_of_calls (hot)
-- changes: runs
update runs set status = 'COMPLETED', exit_code = 0, finished_at = given.at
from $LISTS(:rows, job_id bigint, token text, at bigint, attempt bigint)
where runs.job_id = given.job_id $EACH(runs.job_id, :ids) and runs.status is null
  and exists (select 1 from claims where claims.job_id = given.job_id
              and claims.token = given.token and claims.state <> 'ended' and claims.state <> 'gone')

-- name: finish_calls (hot)
-- changes: jobs (ends)
update jobs set status = 'succeeded',
  finished_at = (select runs.finished_at from runs where runs.job_id = jobs.id)
where id in $IDS(:ids) and status = 'running'
  and exists (select 1 from runs where runs.job_id = jobs.id and runs.status is not null)

-- name: tell_calls_succeeded
-- changes: events
insert into events (at, actor, kind, job_id, data)
select :at, :actor, 'succeeded', given.job_id,
  '{"attempt":' || cast(given.attempt as text) || ',"exit_code":0}'
from $LISTS(:rows, job_id bigint, token text, at bigint, attempt bigint)
where exists (select 1 from claims where claims.job_id = given.job_id
              and claims.token = given.token and claims.state <> 'ended' and claims.state <> 'gone')

-- name: end_claims_of_calls (hot)
-- changes: claims (followed)
-- Nothing of them is left that anyone could look for: no files, no process of their own.
delete from claims
where job_id in $IDS(:ids) and token in $TEXTS(:tokens) and state <> 'ended' and state <> 'gone'

-- name: end_lendings_of_calls (hot)
-- changes: lendings
-- Of those whose claims have ended by now.
delete from lendings where job_id in $IDS(:ids)
  and not exists (select 1 from claims where claims.job_id = lendings.job_id and claims.state = 'live')

-- name: satisfy_chains_of_calls (hot)
-- changes: edges (takes away)
-- Those that somebody waits for, if they have succeeded indeed: their last jobs, for one that succeeded
-- before may be run again.
update edges set mark = 'satisfied' where chain in $IDS(:chains) and mark <> 'satisfied'
  and chain in (select each.chain from jobs each where $CHAIN(each., in $IDS(:chains))
                and each.status = 'succeeded' and each.id = $LAST(each.chain))
returning chain
