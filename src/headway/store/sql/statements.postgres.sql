-- What a PostgreSQL server is sent beside the named queries of the tables: how a transaction begins, takes
-- its turn and leaves its trace. Each statement is written out as it is sent.
--
-- The traces are a ring of 1024 rows in the table commits. The newest number stands before it, at -1; in the
-- place of a token is the number of the last commit that did more than to add plain calls. The store's own
-- name stands at -3. No backup holds these rows, and no restore touches them. The row at -2 is of an older
-- Headway.

-- name: begin_read
begin isolation level repeatable read read only

-- name: begin_write
begin isolation level read committed

-- name: now
select (extract(epoch from clock_timestamp()) * 1000000)::bigint

-- name: instant_of_read
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, '', 0, 0

-- name: take_turn
-- The lock is a statement of its own, so that the instant and all that is read come after the wait.
-- A writer that vanished without a word must not keep its turn. A prepared statement is not planned anew for
-- the values of each step: for few rows of a table with many indexes the server would take that for worth
-- it, and it takes longer than all the rest.
select set_config('lock_timeout', :busy, true),
  set_config('idle_in_transaction_session_timeout', :silent, true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  pg_advisory_xact_lock(:space::integer, :key::integer)

-- name: take_first_turn
-- The same before there are tables. What is found first need not be the same for all users, so the key is
-- made of the schema where the tables are, or will be.
select set_config('lock_timeout', :busy, true),
  set_config('idle_in_transaction_session_timeout', :silent, true),
  set_config('plan_cache_mode', 'force_generic_plan', true),
  pg_advisory_xact_lock(:space::integer, hashtext(coalesce((select nspname from pg_namespace where oid =
    (select relnamespace from pg_class where oid = to_regclass('jobs'))), current_schema())::text))

-- name: join_turn
-- The turn within the transaction of another, and the key of the store that its connection finds.
select key, pg_advisory_xact_lock(:space::integer, key)
from (select hashtext(coalesce((select nspname from pg_namespace where oid =
  (select relnamespace from pg_class where oid = to_regclass('jobs'))), current_schema())::text) as key) as own

-- name: instant
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text,
  coalesce((select number from commits where place = -1), 0),
  coalesce((select nullif(token, '')::bigint from commits where place = -1), 0)

-- name: first_instant
-- The same before there are tables.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text, 0, 0

-- name: optimistic_instant
-- For a writer that has sent all that is to be done without reading anything. It fails unless the newest
-- commit is the one that the writer knows, and the time is nearly what the writer takes it for: by less than
-- a second it may be before what others have written meanwhile.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text,
  coalesce((select number from commits where place = -1), 0),
  coalesce((select nullif(token, '')::bigint from commits where place = -1), 0),
  cast(case when coalesce((select number from commits where place = -1), 0) = :number
      and (extract(epoch from clock_timestamp()) * 1000000)::bigint - :now between 0 and 1000000
    then '1' else 'headway: others have written; look again' end as bigint)

-- name: newest_commit
select coalesce((select number from commits where place = -1), 0)

-- name: leave_trace
-- Others are notified: in which store, for there may be several in one database, the number, and whose.
with head as (
  insert into commits (place, number, token) values (-1, 1, '1')
  on conflict (place) do update set number = commits.number + 1, token = (commits.number + 1)::text
  returning number
)
insert into commits (place, number, token) select mod(number, 1024), number, :token from head
on conflict (place) do update set number = excluded.number, token = excluded.token
returning number, pg_notify('headway', :key || ' ' || number || ' ' || token)

-- name: leave_trace_in_turn
-- The same of a transaction that was begun in another part. If that part failed there is no transaction to
-- be in, and so nothing of what is set only in one that has its turn.
with head as (
  insert into commits (place, number, token) values (-1, 1, '1')
  on conflict (place) do update set number = commits.number + 1, token = (commits.number + 1)::text
  returning number
)
insert into commits (place, number, token)
select mod(number, cast(case when current_setting('plan_cache_mode') = 'force_generic_plan'
    then '1024' else 'headway: the transaction was undone' end as bigint)), number, :token from head
on conflict (place) do update set number = excluded.number, token = excluded.token
returning number, pg_notify('headway', :key || ' ' || number || ' ' || token)

-- name: find_trace
select coalesce((select number from commits where place = -1), 0),
  (select token from commits where token = :token or token like :token || ' %%' limit 1)

-- name: is_over
select pg_xact_status(:transaction::xid8)

-- name: is_at_work
-- A line on which it waits for us, or on which what it says does not arrive, is dead.
select 'at work' from pg_stat_activity where pid = :pid
  and coalesce(state, '') not like 'idle%%' and coalesce(wait_event_type, '') <> 'Client'

-- name: is_gone
select 'gone' where not exists (select 1 from pg_stat_activity where pid = :pid)

-- name: version
select version,
  hashtext(coalesce((select nspname from pg_namespace where oid =
    (select relnamespace from pg_class where oid = to_regclass('jobs'))), current_schema())::text),
  coalesce((select number from commits where place = -1), 0),
  (extract(epoch from clock_timestamp()) * 1000000)::bigint,
  (select token from commits where place = -3)
from schema_version

-- name: name_store
insert into commits (place, number, token) values (-3, 0, :name) on conflict do nothing

-- name: in_its_place
-- What is made, is made where the tables are: a user may have a schema of the user's own before it.
select set_config('search_path', quote_ident(nspname) || ', ' || current_setting('search_path'), true)
from pg_namespace where oid = (select relnamespace from pg_class where oid = to_regclass('jobs'))

-- name: size
-- The bytes of all tables, with their indexes, of the schema that holds ours.
select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
where relkind = 'r' and relnamespace = (select relnamespace from pg_class where oid = to_regclass('jobs'))
