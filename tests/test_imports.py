"""Who may import whom (ARCHITECTURE.md), and where SQL, time and other effects may be.

Read from the sources without importing them. To allow something new, change a table below, and say
why in the commit.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "headway"
FILES = sorted(SOURCE.rglob("*.py"))

# part of the tree -> what it may import of Headway. A name ending in a dot is a whole package.
# The longest matching part decides; everything is listed, so that a new module must be placed.
MAY_IMPORT = {
    "errors": "",
    "crashpoints": "",
    "clock": "",
    "bounded": "",
    "tether": "",
    "core": "core. errors",
    "units": "errors",
    "timing": "errors timing. units",
    "jobsfile": "",
    "jobsfile.model": "core.model",
    "jobsfile.problems": "errors",
    "jobsfile.nodes": "",
    "jobsfile.yaml": "jobsfile.nodes jobsfile.problems",
    "jobsfile.keys": "errors jobsfile.model units",
    "jobsfile.schema": "jobsfile.keys jobsfile.model",
    "jobsfile.standing": (
        "client core. errors jobsfile.making jobsfile.model jobsfile.problems jobsfile.reading "
        "store.seam_entries trust units"
    ),
    "jobsfile.registry": "client errors jobsfile.model",
    "jobsfile.importing": "errors jobsfile.registry",
    "jobsfile.script": (
        "client errors functions.current home jobsfile.importing jobsfile.registry trust"
    ),
    "jobsfile.answering": ("client errors jobsfile.importing jobsfile.model jobsfile.registry"),
    "jobsfile.asking": (
        "bounded clock config core. environment home jobsfile.answering jobsfile.importing "
        "jobsfile.registry probes.conditions tether text trust"
    ),
    "jobsfile.making": (
        "config core. environment home jobsfile.model jobsfile.script runners submission timing."
    ),
    "jobsfile.polled": "core. home jobsfile.script",
    "jobsfile.reading": (
        "errors jobsfile.keys jobsfile.model jobsfile.nodes jobsfile.problems jobsfile.yaml timing."
    ),
    "quotas": "core. errors units",
    "verbs": (
        "core. adding client grouping jobsfile.standing ordering scheduled schedules scheduling "
        "slinging submission "
        "targeting templating views"
    ),
    "digesting": "core.",
    "home": "errors host storefolders trust",  # where it is made, and folders get their names
    "storefolders": "home host supervise.",
    "trust": "clock errors units",
    "storetrust": "errors home host trust",
    "trustparts": (
        "approving clock config errors home jobsfile.model jobsfile.reading runners.files "
        "store.inspecting storetrust trust"
    ),
    "tomlfile": "errors",
    "fields": "errors units",
    "text": "",
    "config": "core. errors fields home policies quotas tomlfile trust units",
    "policies": "core. quotas",
    "environment": "errors home",
    "host": "home supervise.",
    "launching": "home supervise.",
    "supervise": "supervise. crashpoints",
    "store": "store. core. errors clock crashpoints",
    "store.base": (
        "core. store.patience store.seam_adding store.seam_calls store.seam_entries "
        "store.seam_governor store.seam_limits "
        "store.seam_groups store.seam_order store.seam_reservations store.seam_schedules "
        "store.seam_templates store.seam_waking"
    ),
    "store.seam_adding": "core.",
    "store.seam_calls": "core.",
    "store.seam_entries": "core.",
    "store.seam_governor": "core.",
    "store.seam_limits": "core.",
    "store.seam_groups": "core.",
    "store.queries": "",
    "executors": (
        "core. config environment errors executors. functions.journal git home launching "
        "jobsfile.model probes.starting runners. trust"
    ),
    "gather": "core. config executors home quotas store.base units",
    "consequences": "core. store.base ageing",
    "store.seam_order": "core.",
    "ageing": "core. store.base units",
    "placing": "core. consequences store.base",
    "ordering": "core. client errors placing store.base",
    "lineup": "core. client listing store.base",
    "effects": "core. store.base units",
    "downstream": "core. store.base",
    "documents": "core. home quotas runners.results store.base supervise. units",
    "submission": "core. config errors gating home quotas retrying runners.asking units",
    "runners": "errors runners. submission units",
    "runners.files": "errors runners. tomlfile trust units",
    "runners.process": "runners. supervise.folder",
    "runners.wrapper": "runners. supervise.folder",
    "runners.streams": "retrying runners.streams.",
    "runners.results": "supervise.folder",
    "runners.looking": "bounded config environment errors runners.",
    "runners.verdict": "runners.streams.",
    "runners.asking": "config errors home runners. submission",
    "gating": "core. errors git.layout git.looking git.program submission",
    "git": "git. bounded errors",
    "sources": "bounded core. errors sources.",
    "probes": (
        "bounded core. errors git git.__main__ git.looking git.program probes. sources tether"
    ),
    "engine": (
        "core. engine. supervise. executors. functions.journal store.base store.seam_calls "
        "store.seam_waking bounded clock "
        "collecting config consequences copies crashpoints documents environment errors filing "
        "gather home host launching passing policies probes probes.pressure units expiring firing "
        "timing."
    ),
    "engine.worker": (
        "clock config core. crashpoints engine. errors home host store.base supervise. trust "
        "workertrouble"
    ),
    "workertrouble": "home supervise. units",
    "engine.noticing": "clock engine.beside errors jobsfile.model jobsfile.reading trust",
    "engine.declared": (
        "core. engine.noticing errors jobsfile.making jobsfile.model store.base store.seam_entries"
    ),
    "engine.rounds": (
        "adding clock config core. crashpoints engine. errors home host jobsfile. store.base "
        "store.seam_entries"
    ),
    "filing": "core. store.base",
    "cycles": "core. errors store.base",
    "linking": "core. errors submission",
    "graphs": "errors runners.model linking submission units quotas",
    "adding": (
        "core. cycles digesting errors filing host joining store.base store.seam_adding subjects "
        "ageing collecting placing templates"
    ),
    "joining": "core. consequences errors store.base",
    "passing": "core. gather home store.base",
    "scheduled": "core. client consequences probes store.base units",
    "subjects": "core. config errors home sources store.base",
    "targeting": "core. client errors quotas store.base submission units",
    "recipes": ("core. client errors sources store.seam_templates submission targeting templating"),
    "slinging": (
        "core. adding client config environment errors joining recipes sources store.base subjects "
        "templates"
    ),
    "client": (
        "adding cancelling collecting core. store store.base store.seam_adding supervise. clock "
        "config documents effects environment errors executors gather home host launching linking "
        "listing policies probes.pressure reserving rewinding running storage storetrust "
        "submission troubles verbs workertrouble"
    ),
    "cancelling": "core. store.base supervise. client consequences downstream errors worktreeing",
    "grouping": (
        "core. adding cancelling client cycles errors joining store.base submission units"
    ),
    "worktreeing": "core. store.base crashpoints git.cleaning git.ownership home",
    "rewinding": (
        "core. store.base client consequences crashpoints downstream errors git.looking "
        "git.program subjects units worktreeing"
    ),
    "person": "errors git.layout git.program supervise. client",
    "approving": "core. client consequences environment errors gating person store.base units",
    "editing": "core. client environment errors placing store.base submission consequences",
    "collecting": (
        "core. config consequences crashpoints downstream errors home store.base supervise. "
        "worktreeing quotas"
    ),
    "publishing": "core. client consequences errors gating git.layout probes store.base units",
    "restoring": (
        "core. store store.base store.exchange store.filesystems store.inspecting "
        "store.postgres store.sqlite store.sqlitefiles store.transfer supervise. clock crashpoints "
        "epoch errors home host units"
    ),
    "checkup": (
        "checkup. core. copies elsewhere epoch jobsfile.model jobsfile.reading runners. running "
        "store store.base store.filesystems store.inspecting store.pgaddress store.postgres "
        "store.queries store.sqlite storetrust supervise. clock config errors home host trust "
        "units workertrouble"
    ),
    "hints": "",
    "taskoptions": "app errors quotas submission tasks units",
    "tasks": "core. app client errors hints linking store.seam_adding submission taskoptions",
    "hosted": "",
    "app": (
        "core. adding client clock errors functions.current hosted store.seam_adding submission "
        "taskoptions tasks units views waiting"
    ),
    "functions": "",
    "functions.journal": "",
    "functions.current": "errors functions.journal hints units",
    "functions.output": "functions.current supervise.",
    "functions.orders": "",
    "functions.calling": "functions.current hints",
    "functions.host": "functions. app crashpoints tasks",
    "waiting": "core. store.base client clock errors gather submission units",
    "elsewhere": "core. store.base units",
    "epoch": "",
    "copies": "core. home host",
    "running": "core. supervise. copies home host",
    "storage": "core. home",
    "listing": "core. joining store.base",
    "schedule": "core. schedule. text units",
    "schedule.loading": "core. schedule. store.base client downstream probes",
    "views": (
        "core. store.base client config elsewhere epoch gather passing probes units troubles "
        "reserving occupancy"
    ),
    "demo": "core. supervise. client clock errors submission units waiting",
    "testing": "app clock config errors home testing_drain",
    "testing_drain": (
        "core. engine. functions. app clock errors gather probes store store.base testing"
    ),
    "testing_fixtures": "app testing waiting",
    "service": "errors service. trust",
    "cli": "",  # anything: nobody imports it
    "__main__": "cli.",
    "__init__": "app client errors functions.current jobsfile.registry",  # when they are asked for
    "store.seam_templates": "core.",
    "store.seam_waking": "core.",
    "store.seam_schedules": "core.",
    "firing": (
        "adding config consequences core. errors gating graphs home host linking store.base "
        "store.seam_templates submission templates templating"
    ),
    "scheduling": (
        "adding client core. environment errors firing graphs linking quotas store.base submission "
        "templating timing. units"
    ),
    "schedules": ("client core. errors scheduling store.base store.seam_schedules timing. units"),
    "retrying": "errors",
    "templates": "errors store.base store.seam_templates units",
    "templating": (
        "adding client core. errors graphs linking quotas store.base store.seam_templates "
        "submission templates"
    ),
    "chaining": "core. client collecting errors units",
    "troubles": "core. client store.base units",
    "store.seam_reservations": "core.",
    "reserving": (
        "core. store.base client clock config consequences errors functions.current quotas "
        "units waiting expiring"
    ),
    "occupancy": "core. config gather store.base units",
    "expiring": "core. store.base supervise.direct",
}
ANYTHING = {"cli"}

# The standard library's pure modules; `os` only for the words of an error number.
PURE = {
    "collections.abc",
    "dataclasses",
    "enum",
    "errno",
    "heapq",
    "itertools",
    "math",
    "re",
    "types",
    "typing",
}
CORE_MAY_USE = {"os": {"strerror"}}

THIRD_PARTY = {
    "apsw": {"store.sqlite", "store.sqliteerrors"},
    "psycopg": {
        *("store.postgres", "store.pgaddress", "store.pgjoin", "store.pgpool", "store.pgsession"),
        *("store.pgsilence", "store.pgwire"),
    },
    "psycopg_pool": {"store.pgpool"},
    "tomlkit": {"config"},
    "yaml": {"jobsfile.yaml"},
    "click": {"cli"},
    "cronsim": {"timing"},
    "rich": {"cli.frame", "cli.watch"},
    "pytest": {"testing_fixtures"},
}

# Time is read in clock.py, and where no clock can be handed in: in supervisors, wrappers of agents
# and function hosts,
# for the pause before a lost connection is made anew, while a server is silent, others hold a
# repository's lock, or write to a store's file.
READS_TIME = {
    *("clock", "supervise", "functions", "store.pgsession", "git.locking", "store.patience"),
    *("runners.process", "runners.wrapper", "store.pgsilence"),
}
FORMATS_DATES = {"units", "cli", "timing"}
# For the core; for that pause; before a transaction that others undid is made again.
DRAWS_LOTS = {"engine.settling", "store.pgsession", "store.sqlstore"}

# Pragmas, begin, commit and its trace are the connection's own, and catalogs and whole tables are a
# server's; everything else is a named query.
SPEAKS_SQL = {
    *("store.sqlite", "store.postgres", "store.pgsession", "store.pgtexts", "store.serverside"),
    "store.pgspread",  # spells one insert for many rows
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


def rule_of(name: str) -> str | None:
    """The part of the tree that decides for this module."""
    parts = [part for part in MAY_IMPORT if within(name, {part})]
    return max(parts, key=len) if parts else None


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Full names, `a.b.c` for both `import a.b.c` and `from a.b import c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(imported: str) -> str:
    """`headway.core.model.Job` -> `core.model`: the module, without the name it gives."""
    parts = imported.split(".")[1:]
    while parts:
        path = SOURCE.joinpath(*parts)
        if path.with_suffix(".py").exists() or path.is_dir():
            return ".".join(parts)
        parts.pop()
    return "__init__"


def allowed(module: str, rule: str) -> bool:
    return any(
        within(module, {word[:-1]}) if word.endswith(".") else module == word
        for word in MAY_IMPORT[rule].split()
    )


SOURCES = {name_of(file): ast.parse(file.read_text(), str(file)) for file in FILES}
EVERY_MODULE = pytest.mark.parametrize("name", SOURCES)


@EVERY_MODULE
def test_a_module_imports_only_what_its_place_allows(name: str) -> None:
    rule = rule_of(name)
    assert rule is not None, f"{name} has no line in MAY_IMPORT"
    own = {module_of(each) for each in imports_of(SOURCES[name]) if each.startswith("headway")}
    if rule not in ANYTHING:
        assert sorted(each for each in own if not allowed(each, rule)) == []


@EVERY_MODULE
def test_nobody_imports_the_edges(name: str) -> None:
    own = {module_of(each) for each in imports_of(SOURCES[name]) if each.startswith("headway")}
    testing = {"testing", "testing_drain", "testing_fixtures"}
    assert name in testing or not own & testing
    edges = {each for each in own if within(each, {"cli"})}
    assert not edges or within(name, {"cli", "__main__"})


@EVERY_MODULE
def test_a_library_of_others_is_used_in_one_place(name: str) -> None:
    standard = set(sys.stdlib_module_names) | {"headway"}
    foreign = {each.split(".")[0] for each in imports_of(SOURCES[name])} - standard
    assert foreign <= set(THIRD_PARTY)
    for library in foreign:
        assert within(name, THIRD_PARTY[library]), f"{library} in {name}"


@pytest.mark.parametrize("name", [name for name in SOURCES if within(name, {"core"})])
def test_the_core_uses_only_the_pure_part_of_the_standard_library(name: str) -> None:
    tree = SOURCES[name]
    outside = {each for each in imports_of(tree) if not each.startswith("headway")}
    impure = {each for each in outside if not within(each, PURE)}
    assert impure <= set(CORE_MAY_USE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = node.value.id
            if module in impure:
                assert node.attr in CORE_MAY_USE[module], f"{module}.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}


@EVERY_MODULE
def test_time_and_chance_are_arguments(name: str) -> None:
    imported = {each.split(".")[0] for each in imports_of(SOURCES[name])}
    if not within(name, READS_TIME):
        assert "time" not in imported
    if not within(name, FORMATS_DATES):
        assert "datetime" not in imported
    if not within(name, DRAWS_LOTS):
        assert not imported & {"random", "secrets", "uuid"}
    for node in ast.walk(SOURCES[name]):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"utcnow", "today"}, f"line {node.lineno}"
            is_now = node.attr == "now" and isinstance(node.value, ast.Name)
            assert not (is_now and node.value.id == "datetime"), f"line {node.lineno}"


@EVERY_MODULE
def test_sql_is_written_only_in_the_named_queries(name: str) -> None:
    if within(name, SPEAKS_SQL):
        return
    for node in ast.walk(SOURCES[name]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not SQL.match(node.value), f"line {node.lineno}: {node.value[:60]}"


def test_sql_would_be_recognised() -> None:
    assert SQL.match("select id from jobs") and SQL.match("  UPDATE jobs SET x = 1")
    assert SQL.match("insert into jobs values (1)") and SQL.match("delete from jobs")
    assert not SQL.match("update the settings") and not SQL.match("delete it first")


def test_every_line_of_the_table_is_about_a_module_that_exists() -> None:
    for part in MAY_IMPORT:
        path = SOURCE.joinpath(*part.split("."))
        assert path.with_suffix(".py").exists() or path.is_dir(), part
