"""The statements of `sql/statements.postgres.sql` by their names, and what goes with them."""

from headway.store.queries import statements_in

TRACES = 1024  # as in leave_trace
CALLS = "calls"  # the last word about a commit that only adds plain calls
LOCK_SPACE = 0x48656164  # so that no one else's advisory locks are meant

_TEXTS = statements_in("statements.postgres.sql", r"%(\1)s")

BEGIN_READ = _TEXTS["begin_read"]
BEGIN_WRITE = _TEXTS["begin_write"]
FIND_TRACE = _TEXTS["find_trace"]
FIRST_INSTANT = _TEXTS["first_instant"]
INSTANT = _TEXTS["instant"]
INSTANT_OF_READ = _TEXTS["instant_of_read"]
IN_ITS_PLACE = _TEXTS["in_its_place"]
IS_AT_WORK = _TEXTS["is_at_work"]
IS_GONE = _TEXTS["is_gone"]
IS_OVER = _TEXTS["is_over"]
JOIN_TURN = _TEXTS["join_turn"]
LEAVE_IN_TURN = _TEXTS["leave_trace_in_turn"]
LEAVE_TRACE = _TEXTS["leave_trace"]
NAME_STORE = _TEXTS["name_store"]
NEWEST_COMMIT = _TEXTS["newest_commit"]
NOW = _TEXTS["now"]
OPTIMISTIC_INSTANT = _TEXTS["optimistic_instant"]
SIZE = _TEXTS["size"]
TAKE_FIRST_TURN = _TEXTS["take_first_turn"]
TAKE_TURN = _TEXTS["take_turn"]
VERSION = _TEXTS["version"]
