-- Plain calls on SQLite.

-- name: ready_calls_besides (hot)
-- As `ready` of functions, without those whose task is among these; so far from the head at most.
select $JOB from (
  select * from jobs where stage = 'ready' and queue = 'functions'
  order by level desc, position, created_at, id limit :window
) as head where not (params ->> '$.task' in $TEXTS(:keys))
order by level desc, position, created_at, id limit :limit
