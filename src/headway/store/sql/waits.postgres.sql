-- The planning step on PostgreSQL, where every question is a round trip: what planning.sql asks one after
-- the other, or of each job by itself, is asked here at once.

-- name: woken_with_unmet (hot)
-- As `woken_anywhere`; with each job, as often as there is such, the edges that `unmet_edges` and
-- `unmet_edges_of_many` find, and the last job of the chain that each leads to.
select waiting.*, unmet.place, unmet.declared, unmet.chain, last.*
from (
  select $JOB from jobs where stage = 'woken'
  order by queue, level desc, position, created_at, id limit :limit
) as waiting
left join lateral (
  (select 'failed' as place, declared, chain from edges
   where job_id = waiting.id and mark = 'failed' order by ord limit 1)
  union all
  (select 'first', declared, chain from edges
   where job_id = waiting.id and mark = 'pending' order by ord limit 1)
  union all
  (select 'last', declared, chain from edges
   where job_id = waiting.id and mark = 'pending' order by ord desc limit 1)
) as unmet on true
left join lateral (
  select $JOB from jobs where id = $LAST(unmet.chain)
) as last on true
order by waiting.queue, waiting.level desc, waiting.position, waiting.created_at, waiting.id

-- name: unmet_of_jobs (hot)
-- The same for jobs that are known.
select waiting.id, unmet.place, unmet.declared, unmet.chain, last.*
from unnest(:ids::bigint[]) as waiting(id)
cross join lateral (
  (select 'failed' as place, declared, chain from edges
   where job_id = waiting.id and mark = 'failed' order by ord limit 1)
  union all
  (select 'first', declared, chain from edges
   where job_id = waiting.id and mark = 'pending' order by ord limit 1)
  union all
  (select 'last', declared, chain from edges
   where job_id = waiting.id and mark = 'pending' order by ord desc limit 1)
) as unmet
left join lateral (
  select $JOB from jobs where id = $LAST(unmet.chain)
) as last on true

-- name: satisfy_and_wake (hot)
-- changes: edges, jobs (followed)
-- As `satisfy_chains`, and those are woken who wait for one of them.
with satisfied as (
  update edges set mark = 'satisfied' where chain in $IDS(:chains) and mark <> 'satisfied'
  returning chain
)
update jobs set stage = 'woken', wake_at = null, checked_at = null
where id = any(array(
  select job_id from waits
  where topic = any(array(select distinct 'chain:' || chain from satisfied))
)) and stage <> 'woken'
