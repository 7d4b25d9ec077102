"""Which room may import which (ARCHITECTURE.md), and where SQL, time and other effects may be.
A class name is used once.

Read from the sources without importing them. To allow something new, change a table below, and say
why in the commit.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "headway"
FILES = sorted(SOURCE.rglob("*.py"))

# room: the rooms that it may import, besides itself.
BELOW_JOBS = "base core supervise store integrations"
FEATURES = f"{BELOW_JOBS} jobs workflows functions schedules workitems webhooks"
ROOMS = {
    "base": "",
    "core": "base",
    "supervise": "base",
    "store": "base core",
    "integrations": "base core supervise",
    "jobs": BELOW_JOBS,
    "workflows": f"{BELOW_JOBS} jobs",
    "functions": f"{BELOW_JOBS} jobs workflows",
    "schedules": f"{BELOW_JOBS} jobs workflows",
    "workitems": f"{BELOW_JOBS} jobs workflows",
    "webhooks": f"{BELOW_JOBS} jobs workflows",
    "worker": FEATURES,
    "admin": FEATURES,
    "client": f"{FEATURES} admin",
    "web": f"{FEATURES} client admin __init__",  # its version
    "mcp": f"{FEATURES} client admin __init__",  # its version
    "cli": f"{FEATURES} client admin worker web mcp __init__",  # its version
    "testing": f"{FEATURES} client worker",
    "cli.aliases": f"{FEATURES} client testing",
}
# What users' functions are given has a client; so have programs that are started by `python -m`.
HAVE_A_CLIENT = {
    *("functions.app", "schedules.jobsfile.registry", "schedules.jobsfile.script"),
    *("schedules.jobsfile.question_process", "admin.demo"),
}

# The standard library's pure modules; `os` only for the words of an error number.
PURE = {
    "collections.abc",
    "dataclasses",
    "enum",
    "errno",
    "heapq",
    "ipaddress",
    "itertools",
    "json",
    "math",
    "re",
    "types",
    "typing",
    "urllib.parse",
}
CORE_MAY_USE = {"os": {"strerror"}}

THIRD_PARTY = {
    "apsw": {"store.sqlite"},
    "psycopg": {"store.postgres"},
    "psycopg_pool": {"store.postgres.pool"},
    "tomlkit": {"jobs.settings"},
    "yaml": {"schedules.jobsfile.yaml"},
    "click": {"cli"},
    "cronsim": {"schedules.timing"},
    "rich": {"cli.jobs.frame", "cli.jobs.watch", "cli.panes.live"},
    "pytest": {"testing.fixtures"},
    "uvicorn": {"web.server", "web.protocol"},
    "h11": {"web.protocol"},
    "jinja2": {"web.pages.page"},
    "markupsafe": {"web.pages"},
    "mcp": {"mcp.server"},
}

# Time is read in the clock, and where no clock can be handed in: in supervisors, wrappers of agents
# and function hosts, for the pause before a lost connection is made anew, while a server is silent,
# and while others hold a repository's lock or write to a store's file.
READS_TIME = {
    *("base.clock", "base.proc", "base.worker_lock", "supervise", "functions.host"),
    *("integrations.agents.process", "integrations.agents.wrapper", "integrations.git.lock"),
    *("store.postgres.session", "store.patience", "store.postgres.silence"),
}
FORMATS_DATES = {
    *("base.units", "cli", "integrations.agents.limits", "schedules.timing", "web.pages.formats"),
}
# For the core; for that pause; before a transaction that others undid is made again; so that not
# all deliveries that failed come again at once.
DRAWS_LOTS = {"worker.settler", "store.postgres.session", "store.store", "webhooks.courier"}

# Pragmas, begin, commit and its trace are the connection's own, and catalogs and whole tables are a
# server's; everything else is a named query.
SPEAKS_SQL = {
    *("store.sqlite.database", "store.postgres.database", "store.postgres.session"),
    "store.postgres.admin",
    "store.postgres.multi_insert",  # spells one insert for many rows
}
SQL = re.compile(
    r"^\s*(select\s.+\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+table\s)",
    re.I | re.S,
)


def name_of(file: Path) -> str:
    parts = list(file.relative_to(SOURCE).with_suffix("").parts)
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def within(name: str, parts: set[str]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def room_of(name: str) -> str:
    return "cli.aliases" if within(name, {"cli.aliases"}) else name.partition(".")[0]


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Full names, `a.b.c` for both `import a.b.c` and `from a.b import c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named_in(tree: ast.AST) -> Iterator[str]:
    """Full names of modules of ours that are imported by a name, `f"headway.cli.{module}"`: each
    text of that file that names one, with or without an attribute."""
    prefixes = {
        str(node.values[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant)
    }
    for prefix in prefixes:
        if re.fullmatch(r"headway\.([a-z_]+\.)*", prefix):
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and re.fullmatch(
                    r"[\w.]+(:\w+)?", str(node.value)
                ):
                    name = prefix + str(node.value).partition(":")[0]
                    if SOURCE.joinpath(*name.split(".")[1:]).with_suffix(".py").exists():
                        yield name


def module_of(imported: str) -> str:
    """`headway.core.model.Job` -> `core.model`: the module, without the name it gives."""
    parts = imported.split(".")[1:]
    while parts:
        path = SOURCE.joinpath(*parts)
        if path.with_suffix(".py").exists() or path.is_dir():
            return ".".join(parts)
        parts.pop()
    return "__init__"


@cache
def sources() -> dict[str, ast.Module]:
    return {name_of(file): ast.parse(file.read_text(), str(file)) for file in FILES}


@cache
def own() -> dict[str, set[str]]:
    return {
        name: {
            module_of(each)
            for each in (*imports_of(tree), *named_in(tree))
            if each.partition(".")[0] == "headway"
        }
        for name, tree in sources().items()
    }


ENTRANCES = {"__init__", "__main__"}  # they load what is asked for, when it is asked for


def test_every_module_is_in_a_room() -> None:
    assert {room_of(name) for name in sources()} - ENTRANCES == set(ROOMS)


def test_a_room_imports_only_the_rooms_below_it() -> None:
    breaches = [
        f"{name} -> {module}"
        for name, modules in own().items()
        if name not in ENTRANCES
        for module in sorted(modules)
        if room_of(module) not in {room_of(name), *ROOMS[room_of(name)].split()}
        if not (module == "client" and name in HAVE_A_CLIENT)
    ]
    assert breaches == []


# The commands that start a worker, a server or the tools of agents, or ask where a server is.
STARTS = {"cli.work", "cli.scheduler.run", "cli.serve", "cli.web", "cli.mcp"}


def test_a_command_knows_a_process_only_to_start_it() -> None:
    within_cli = {name: modules for name, modules in own().items() if room_of(name) == "cli"}
    found = {
        name
        for name, modules in within_cli.items()
        if {room_of(each) for each in modules} & {"worker", "web", "mcp"}
    }
    assert found == STARTS


def test_a_library_of_others_is_used_in_one_place() -> None:
    standard = set(sys.stdlib_module_names) | {"headway"}
    for name, tree in sources().items():
        foreign = {each.split(".")[0] for each in imports_of(tree)} - standard
        assert foreign <= set(THIRD_PARTY), name
        for library in foreign:
            assert within(name, THIRD_PARTY[library]), f"{library} in {name}"


def test_the_rules_use_only_the_pure_part_of_the_standard_library() -> None:
    pure = {name for name in sources() if within(name, {"core"}) or name.endswith(".rules")}
    for name in pure:
        tree = sources()[name]
        outside = {each for each in imports_of(tree) if not each.startswith("headway")}
        impure = {each for each in outside if not within(each, PURE)}
        assert impure <= set(CORE_MAY_USE), name
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = node.value.id
                if module in impure:
                    assert node.attr in CORE_MAY_USE[module], f"{name}: {module}.{node.attr}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"open", "print", "input"}, name


def test_time_and_chance_are_arguments() -> None:
    for name, tree in sources().items():
        imported = {each.split(".")[0] for each in imports_of(tree)}
        if not within(name, READS_TIME):
            assert "time" not in imported, name
        if not within(name, FORMATS_DATES):
            assert "datetime" not in imported, name
        if not within(name, DRAWS_LOTS):
            assert not imported & {"random", "secrets", "uuid"}, name
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"utcnow", "today"}, f"{name}:{node.lineno}"
                is_now = node.attr == "now" and isinstance(node.value, ast.Name)
                assert not (is_now and node.value.id == "datetime"), f"{name}:{node.lineno}"


def test_sql_is_written_only_in_the_named_queries() -> None:
    for name, tree in sources().items():
        if within(name, SPEAKS_SQL):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not SQL.match(node.value), f"{name}:{node.lineno}: {node.value[:60]}"


def test_sql_would_be_recognised() -> None:
    assert SQL.match("select id from jobs") and SQL.match("  UPDATE jobs SET x = 1")
    assert SQL.match("insert into jobs values (1)") and SQL.match("delete from jobs")
    assert not SQL.match("update the settings") and not SQL.match("delete it first")


def test_a_class_name_is_used_once() -> None:
    """A name means one thing in the whole package, also a private one."""
    places: dict[str, list[str]] = {}
    for name, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_class_is_small_and_has_few_ancestors() -> None:
    """A class of the store has at most 40 public methods, with those of its ancestors; no class has
    more than three ancestors of ours."""
    classes = {
        node.name: (name, node)
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }

    def ancestors(of: str) -> set[str]:
        bases = {each.id for each in classes[of][1].bases if isinstance(each, ast.Name)}
        own = bases & classes.keys()
        return own.union(*map(ancestors, own))

    def methods(of: str) -> set[str]:
        functions = (each for each in classes[of][1].body if isinstance(each, ast.FunctionDef))
        return {each.name for each in functions if not each.name.startswith("_")}

    sizes = {
        name: len(methods(name).union(*map(methods, ancestors(name))))
        for name, (module, _) in classes.items()
        if room_of(module) == "store"
    }
    assert {name: size for name, size in sizes.items() if size > 40} == {}
    assert [name for name in classes if len(ancestors(name)) > 3] == []
    assert len(ancestors("JobsTable")) == 2 and sizes["JobsTable"] > 20, "it finds what there is"


def test_the_package_root_has_few_names() -> None:
    there = (each for each in SOURCE.iterdir() if each.is_file() or any(each.glob("*.py")))
    names = {each.name for each in there if not each.name.startswith("__")}
    rooms = {room for room in ROOMS if "." not in room}
    assert names - {"py.typed"} == {*rooms - {"client"}, "client.py"}
    assert len(rooms) <= 18


# What ends so and is a noun all the same.
NOUNS = {"admin.doctor.finding", "cli.sling", "schedules.timing", "testing", "workitems.sling"}
NOUNS |= {"schedules.timing.upcoming", "workflows.drawing"}


def test_a_module_is_called_by_a_noun() -> None:
    """Functions are verbs; aliases have the names of before."""
    found = {name for name in sources() if name.endswith("ing")}
    assert {name for name in found if not within(name, {"cli.aliases"})} == NOUNS


def test_the_page_has_a_row_for_each_room() -> None:
    page = SOURCE.parents[1].joinpath("ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.split("## Rooms\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z/]+)` \|", table, re.M)
    assert sorted(rows) == sorted(room.replace(".", "/") for room in ROOMS)


def test_a_room_says_what_may_not_enter_and_that_it_is_inside() -> None:
    for room in ROOMS.keys() - {"client", "cli.aliases"}:
        said = ast.get_docstring(sources()[room]) or ""
        assert " enter" in said and re.search(r"Inside:|are inside\.|for import by users", said), (
            room
        )


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside of functions, for types alone and by a name count as well."""
    assert "workflows.operations.fan" in own()["workflows.operations"]
    assert "store.tables.jobs" in own()["store.transaction"]
    assert "cli.jobs.retry" in own()["cli.commands"]
    found = circles({name: own()[name] - {name} for name in own() if name not in ENTRANCES})
    assert found == []


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in edges:
        if node not in index:
            visit(node)
    return found
