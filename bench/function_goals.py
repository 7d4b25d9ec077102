"""The goals of function jobs; most are the same on both stores, with the store's own peer."""

from goals import Goal, Sense, over, plain

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NEEDS = {"sqlite": "", "postgres": "PostgreSQL"}


def _drains() -> tuple[Goal, ...]:
    sqlite = "Huey {functions.drain.sqlite.huey:,.0f}/s, DBOS {functions.drain.sqlite.dbos:,.0f}/s"
    postgres = (
        "pgqueuer {functions.drain.postgres.pgqueuer:,.0f}/s, "
        "Procrastinate {functions.drain.postgres.procrastinate:,.0f}/s, "
        "DBOS {functions.drain.postgres.dbos:,.0f}/s"
    )
    return (
        _drain("sqlite", 100, 5.0, "huey", "Huey", sqlite),
        _drain("sqlite", 1, 0.8, "huey", "Huey", sqlite),
        _drain("postgres", 100, 1.1, "pgqueuer", "pgqueuer", postgres),
    )


def _drain(store: str, slots: int, bound: float, peer: str, named: str, beside: str) -> Goal:
    ours = f"functions.drain.{store}.{slots}.headway"
    return Goal(
        f"10,000 functions, max_active {slots}, {NAMES[store]}, x {named}",
        Sense.AT_LEAST,
        bound,
        "x",
        over(ours, f"functions.drain.{store}.{peer}"),
        f"{{{ours}:,.0f}}/s",
        beside,
        peer,
    )


def _submits() -> tuple[Goal, ...]:
    huey = "Huey {submit.sqlite.one.huey:,.0f}/s, DBOS {submit.sqlite.one.dbos:,.0f}/s"
    one = (
        "pgqueuer {submit.postgres.one.pgqueuer:,.0f}/s, "
        "Procrastinate {submit.postgres.one.procrastinate:,.0f}/s, "
        "DBOS {submit.postgres.one.dbos:,.0f}/s"
    )
    bulk = (
        "pgqueuer {submit.postgres.bulk.pgqueuer:,.0f}/s, "
        "Procrastinate {submit.postgres.bulk.procrastinate:,.0f}/s"
    )
    return (
        _submit("sqlite", "one", 1.0, "submit.sqlite.one.huey", "Huey", huey),
        _submit("sqlite", "bulk", 12.0, "submit.sqlite.one.huey", "Huey's enqueue", huey),
        _submit("postgres", "one", 1.0, "submit.postgres.one.pgqueuer", "pgqueuer", one),
        _submit("postgres", "bulk", 1.0, "submit.postgres.bulk.pgqueuer", "pgqueuer's bulk", bulk),
    )


def _submit(store: str, way: str, bound: float, theirs: str, named: str, beside: str) -> Goal:
    ours = f"submit.{store}.{way}.tasks"
    how = "functions one by one" if way == "one" else "10,000 functions in one call"
    return Goal(
        f"submit {how}, {NAMES[store]}, x {named}",
        Sense.AT_LEAST,
        bound,
        "x",
        over(ours, theirs),
        f"{{{ours}:,.0f}}/s",
        beside,
        theirs.rpartition(".")[2],
    )


def _latencies(store: str) -> tuple[Goal, ...]:
    own = f"functions.latency.{store}.headway"
    peer = "functions.latency.postgres.pgqueuer"
    huey = "functions.latency.sqlite.huey"
    ours = f"p50 {{{own}.p50:.1f}} ms, p99 {{{own}.p99:.1f}} ms"
    theirs = (
        f"pgqueuer p50 {{{peer}.p50:.1f}} ms, p99 {{{peer}.p99:.1f}} ms; "
        f"Huey p50 {{{huey}.p50:.1f}} ms; "
        "two syncs of the disk p50 {functions.latency.disk.p50:.1f} ms, "
        "p99 {functions.latency.disk.p99:.1f} ms"
    )
    title = f"function, submit to start, {NAMES[store]}"
    dependent = f"functions.dependent.{store}"
    return (
        Goal(
            f"{title}, p50, x pgqueuer's p50",
            Sense.AT_MOST,
            1.0,
            "x",
            over(f"{own}.p50", f"{peer}.p50"),
            ours,
            theirs,
            "pgqueuer",
        ),
        Goal(
            f"{title}, p99, x pgqueuer's p50",
            Sense.AT_MOST,
            3.0,
            "x",
            over(f"{own}.p99", f"{peer}.p50"),
            ours,
            theirs,
            "pgqueuer",
        ),
        Goal(
            f"function, end to start of dependent, {NAMES[store]}, p50",
            Sense.AT_MOST,
            5.0,
            "ms",
            plain(f"{dependent}.p50"),
            f"p50 {{{dependent}.p50:.1f}} ms, p99 {{{dependent}.p99:.1f}} ms",
            "",
            NEEDS[store],
        ),
    )


def _graphs(store: str) -> tuple[Goal, ...]:
    return (
        _graph(store, "chain", "chain", "chain of 2,000 functions, in one call", 1.2),
        _graph(store, "links", "chain", "chain of 2,000 functions, one by one", 1.2),
        _graph(store, "fan", "fan", "fan 1 to 10,000 to 1", 0.5),
    )


def _graph(store: str, shape: str, of_dbos: str, title: str, bound: float) -> Goal:
    ours, theirs = f"functions.{shape}.{store}.headway", f"functions.{of_dbos}.{store}.dbos"
    return Goal(
        f"{title}, {NAMES[store]}, x DBOS",
        Sense.AT_MOST,
        bound,
        "x",
        over(ours, theirs),
        f"{{{ours}:.2f}} ms a node",
        f"DBOS {{{theirs}:.2f}} ms a node",
        "dbos",
    )


def _depths(store: str) -> tuple[Goal, ...]:
    depth = f"functions.depth.{store}"
    full = f"functions.full.{store}"
    return (
        Goal(
            f"memory, 100,000 functions queued, {NAMES[store]}, PSS",
            Sense.AT_MOST,
            100.0,
            "MB",
            plain(f"{depth}.memory_mb"),
            f"{{{depth}.memory_mb:.1f}} MB, of which the worker {{{depth}.worker_mb:.1f}} MB",
            "",
            NEEDS[store],
        ),
        Goal(
            f"drain of 100,000, {NAMES[store]}, last tenth x first",
            Sense.AT_LEAST,
            0.8,
            "x",
            over(f"{depth}.last", f"{depth}.first"),
            f"{{{depth}.last:,.0f}}/s",
            f"first tenth {{{depth}.first:,.0f}}/s",
            NEEDS[store],
        ),
        Goal(
            f"drain with 1,000,000 finished and 100,000 waiting, {NAMES[store]}, x an empty store",
            Sense.AT_LEAST,
            0.8,
            "x",
            over(f"{full}.full", f"{full}.empty"),
            f"{{{full}.full:,.0f}}/s",
            f"empty {{{full}.empty:,.0f}}/s",
            NEEDS[store],
        ),
    )


FUNCTION_GOALS = (
    *_submits(),
    *_drains(),
    *(goal for store in NAMES for goal in _latencies(store)),
    *(goal for store in NAMES for goal in _graphs(store)),
    *(goal for store in NAMES for goal in _depths(store)),
    Goal(
        '`python -c "import headway"`, x `python -c pass`',
        Sense.AT_MOST,
        5.0,
        "x",
        over("startup.library", "startup.python"),
        "{startup.library:.0f} ms; with an App {startup.app:.0f} ms",
        "python {startup.python:.0f} ms",
    ),
)
