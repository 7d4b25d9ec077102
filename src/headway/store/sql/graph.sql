-- name: add_needs
-- changes: needs
insert into needs (artifact, job_id) values (:artifact, :job_id) on conflict do nothing

-- name: add_produces
-- changes: produces
insert into produces (artifact, job_id, chain) values (:artifact, :job_id, :chain)
on conflict do nothing

-- name: add_patch_maker
-- changes: produces
-- The patch of a job is made by its chain, which need not have said so.
insert into produces (artifact, job_id, chain) select :artifact, id, chain from jobs where id = :maker
on conflict do nothing

-- name: published_keys (hot)
select distinct artifact from artifacts where artifact in $TEXTS(:keys) and withdrawn_at is null

-- name: withdrawn_keys (hot)
select distinct artifact from withdrawals where artifact in $TEXTS(:keys)

-- name: producers_of (hot)
-- For each artifact the last job of each chain that makes it.
select made.artifact, last.id, last.status
from (select distinct artifact, chain from produces where artifact in $TEXTS(:keys)) made
join jobs last on last.id = $LAST(made.chain)
order by made.artifact, last.id

-- name: chain_ends (hot)
select id, status from jobs
where id = (select $LAST(asked.chain) from jobs asked where asked.id = :job_id)

-- name: produced_by_chains (hot)
-- What these chains make, each by the chain's newest job.
select artifact, max(job_id), chain from produces where chain in $IDS(:chains)
group by artifact, chain order by artifact, chain

-- name: consumers_of (hot)
select artifact, job_id from needs where artifact in $TEXTS(:keys) order by job_id

-- name: dependents_of_chains (hot)
select distinct job_id from edges where chain in $IDS(:chains) order by job_id

-- name: chains_of_jobs (hot)
select id, chain from jobs where id in $IDS(:ids)

-- name: publish
-- changes: artifacts
insert into artifacts (artifact, job_id, at, data, withdrawn_at)
values (:artifact, :job_id, :at, :data, null)
on conflict (artifact, job_id) do update set at = excluded.at, data = excluded.data, withdrawn_at = null

-- name: end_withdrawals (hot)
-- changes: withdrawals
delete from withdrawals where chain in $IDS(:chains)

-- name: end_withdrawal (hot)
-- changes: withdrawals
delete from withdrawals where artifact = :artifact and chain = :chain

-- name: withdraw_markers
-- changes: artifacts
update artifacts set withdrawn_at = :at
where withdrawn_at is null and job_id in $IDS(:ids)
returning artifact

-- name: withdraw_products
-- changes: withdrawals
insert into withdrawals (artifact, chain, at)
select distinct artifact, chain, cast(:at as bigint) from produces where chain in $IDS(:chains)
on conflict do nothing

-- name: published_by_jobs (hot)
select artifact, job_id from artifacts where job_id in $IDS(:ids) order by job_id, artifact

-- name: markers_of_jobs
select artifact, job_id, at, data, withdrawn_at from artifacts where job_id in $IDS(:ids)
order by job_id, artifact

-- name: markers_of_keys
select artifact, job_id, at, data, withdrawn_at from artifacts where artifact in $TEXTS(:keys)
order by artifact, job_id

-- name: newest_markers
-- Without what they carry: a listing does not show it, and it may be large.
select artifact, job_id, at, null, withdrawn_at from artifacts
where not exists (select 1 from artifacts newer where newer.artifact = artifacts.artifact
                  and (newer.at > artifacts.at or (newer.at = artifacts.at
                                                   and newer.job_id > artifacts.job_id)))
order by at desc, artifact limit :limit

-- name: declared_keys
-- What any active job makes or needs, for listings.
select distinct artifact from produces where job_id in (select id from active)
union
select distinct artifact from needs where job_id in (select id from active)

-- name: to_approve
select $JOB from jobs where approval is not null and finished_at is null order by created_at, id

-- name: set_approval (hot)
-- changes: jobs
update jobs set approval = :approval where id = :id and stage is not null

-- name: set_gates (hot)
-- changes: jobs
update jobs set gates = :gates where id = :id and stage is not null

-- name: reopen_edges (hot)
-- changes: edges
-- Inside of a rewound set nothing is satisfied any more.
update edges set mark = 'pending' where job_id in $IDS(:ids) and chain in $IDS(:chains)

-- name: chain_lasts
-- For each of these jobs the last one of its chain.
select asked.id, $LAST(asked.chain)
from jobs asked where asked.id in $IDS(:ids)

-- name: upstream
-- These jobs and the last ones of the chains that they wait for, and so on, as far as they have not
-- ended; each with one such job that it waits for itself, or null.
with recursive upstream (id) as (
  select jobs.id from jobs where jobs.id in $IDS(:ids) and jobs.finished_at is null
  union
  select last.id from upstream
  join edges on edges.job_id = upstream.id and edges.mark = 'pending'
  join jobs last on last.id = $LAST(edges.chain)
  where last.finished_at is null
)
select upstream.id, $LAST(edges.chain)
from upstream left join edges on edges.job_id = upstream.id and edges.mark = 'pending'

-- name: needed_by
select artifact, job_id from needs where job_id in $IDS(:ids) order by job_id, artifact

-- name: own_worktrees
-- changes: worktrees
insert into worktrees (job_id, repo, path, branch, base, state, error, at)
values (:job_id, :repo, :path, :branch, :base, :state, null, :at)
on conflict do nothing

-- name: worktrees_of_jobs
select job_id, repo, path, branch, base, state, error from worktrees where job_id in $IDS(:ids)
order by job_id

-- name: kept_worktrees
select job_id, repo, path, branch, base, state, error from worktrees where state <> 'cleaned'
order by job_id

-- name: set_worktree_state
-- changes: worktrees
update worktrees set state = :state, error = :error, at = :at where job_id = :job_id

-- name: awaited_edges (hot)
-- The chains that the active job of this chain still waits for, and the one whose turn in a sequential
-- group is next before its own.
select edges.chain from edges
where edges.job_id = $LAST(:chain) and mark = 'pending'
union
select ahead.chain from jobs mine
join job_groups on job_groups.id = mine.group_id and job_groups.mode = 'sequential'
join jobs ahead on ahead.group_id = mine.group_id and ahead.finished_at is null
  and ahead.sequence_number = (
    select max(each.sequence_number) from jobs each where each.group_id = mine.group_id
      and each.finished_at is null and each.sequence_number < mine.sequence_number)
where $CHAIN(mine., = :chain) and mine.finished_at is null and mine.group_id is not null

-- name: add_edges
-- changes: edges
-- The mark is what the predecessor's chain shows now; later its end changes it.
insert into edges (job_id, ord, declared, chain, mark)
select :job_id, :ord, :declared, declared.chain,
  case
    when last.status = 'succeeded' then 'satisfied'
    when last.finished_at is null then 'pending'
    else 'failed'
  end
from jobs declared
join jobs last on last.id = $LAST(declared.chain)
where declared.id = :declared

-- name: add_new_edges
-- changes: edges
-- To jobs that were added along with this one.
insert into edges (job_id, ord, declared, chain, mark)
values (:job_id, :ord, :declared, :chain, 'pending')
