"""What a server is told when a transaction begins and ends: the turn, the instant, the traces."""

TRACES = 1024
CALLS = "calls"  # the last word about a commit that only adds plain calls
WAITS = "waits"  # and about one that only adds what waits for others
LOCK_SPACE = 0x48656164  # so that no one else's advisory locks are meant

NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
# Where the tables are, or will be: what is found first need not be the same for all users.
SCHEMA_HASH = (
    "hashtext(coalesce((select nspname from pg_namespace where oid = (select relnamespace "
    "from pg_class where oid = to_regclass('jobs'))), current_schema())::text)"
)
NEWEST = "coalesce((select number from commits where place = -1), 0)"
DISTURBED = "coalesce((select nullif(token, '')::bigint from commits where place = -1), 0)"
# The store's own name stands beside the traces, at -3: those, too, no backup holds and no restore
# touches.
STORE_NAME = "(select token from commits where place = -3)"
NAME_STORE = (
    "insert into commits (place, number, token) values (-3, 0, %(name)s) on conflict do nothing"
)
# The lock is a statement of its own, so that the instant and all that is read come after the wait.
# A writer that vanished without a word must not keep its turn.
# A prepared statement is not planned anew for the values of each step: for few rows of a table with
# many indexes the server would take that for worth it, and it takes longer than all the rest.
BEGIN_WRITE = "begin isolation level read committed"
TURN = (
    "select set_config('lock_timeout', %(busy)s, true), "
    "set_config('idle_in_transaction_session_timeout', %(silent)s, true), "
    "set_config('plan_cache_mode', 'force_generic_plan', true), "
    "pg_advisory_xact_lock({space}, {key})"
)
INSTANT = "select {now}, pg_current_xact_id()::text, {newest}, {disturbed}"
# For one who has said all that is to be done without having heard anything: it fails unless all is
# as it is thought to be, the number of the newest commit and, nearly, the time. By less than a
# second it may be before what others have written meanwhile.
IN_TIME = (
    f"select {NOW}, pg_current_xact_id()::text, {NEWEST}, {DISTURBED}, "
    f"1 / (case when {NOW} - %(now)s between 0 and 1000000 then 1 else 0 end)"
)
AS_THOUGHT = IN_TIME.replace("case when", f"case when {NEWEST} = %(number)s and")
# Or nobody did more since than to add what waits for others.
BUT_WAITS = AS_THOUGHT.replace(
    f"{NEWEST} = %(number)s",
    f"({NEWEST} = %(number)s or exists (select 1 from commits where place = -2 "  # noqa: S608
    f"and number = {NEWEST} and token::bigint <= %(number)s + 1))",
)
NUMBERS = {"newest": NEWEST, "disturbed": DISTURBED}
NO_NUMBERS = {"newest": "0", "disturbed": "0"}
BEGIN_READ = "begin isolation level repeatable read read only"
# The traces are a ring, and the newest number stands before it, at -1; in the place of a token is
# that of the last one which did more than to add plain calls. Others hear of it: in which store,
# for there may be several in one database, the how-manieth, and whose.
LEAVE_TRACE = (
    "with head as (insert into commits (place, number, token) values (-1, 1, '1') "  # noqa: S608
    "on conflict (place) do update set number = commits.number + 1, "
    "token = (commits.number + 1)::text returning number) "
    "insert into commits (place, number, token) "
    f"select mod(number, {TRACES}), number, %(token)s from head "
    "on conflict (place) do update set number = excluded.number, token = excluded.token "
    "returning number, pg_notify('headway', %(key)s || ' ' || number || ' ' || token)"
)
# For one that was begun in another part: if that failed there is no transaction to be in, and so
# nothing of what holds only in one that has its turn.
LEAVE_IN_TURN = LEAVE_TRACE.replace(
    f"mod(number, {TRACES})",
    f"mod(number, {TRACES} / (current_setting('plan_cache_mode') = 'force_generic_plan')::integer)",
)
# With what a statement before it has answered, for those who have heard neither.
LEAVE_ANSWER = LEAVE_TRACE.replace(
    "%(token)s from", "concat(%(token)s::text, ' ', current_setting('headway.answer', true)) from"
)
LEAVE_CALLS = (
    LEAVE_ANSWER.replace("(-1, 1, '1')", "(-1, 1, '')")
    .replace(", token = (commits.number + 1)::text", "")
    .replace("|| token)", f"|| token || ' {CALLS}')")
)
# The last of those one after the other stands at -2, with the first of them in place of a token.
LEAVE_WAITS = LEAVE_TRACE.replace(
    "returning number) ",
    "returning number), streak as (insert into commits (place, number, token) "
    "select -2, number, number::text from head on conflict (place) do update "
    "set number = excluded.number, token = case when commits.number + 1 = excluded.number "
    "then commits.token else excluded.token end) ",
    1,
).replace("|| token)", f"|| token || ' {WAITS}')")
FIND_TRACE = (
    f"select {NEWEST}, (select token from commits "  # noqa: S608
    "where token = %(token)s or token like %(token)s || ' %%' limit 1)"
)
IS_OVER = "select pg_xact_status(%s::xid8)"
# A line on which it waits for us, or on which what it says does not arrive, is dead.
IS_AT_WORK = (
    "select 'at work' from pg_stat_activity where pid = %s "
    "and coalesce(state, '') not like 'idle%%' and coalesce(wait_event_type, '') <> 'Client'"
)
IS_GONE = "select 'gone' where not exists (select 1 from pg_stat_activity where pid = %s)"
