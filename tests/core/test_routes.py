"""Which nodes of a run start, wait, are skipped or blocked, and when a loop goes back."""

import os
import random

import pytest

from headway.core.routes import (
    EVERY_OUTCOME,
    Arrival,
    Go,
    Join,
    LoopCount,
    LoopRule,
    NodeOutcome,
    NodeRule,
    PassedBy,
    Pending,
    RouteEdge,
    RunState,
    Unreachable,
    accepted_from,
    bodies,
    calls,
    final_outcome,
    judge,
    left_by,
    next_loop,
    run_state,
    together,
)
from run_model import RunModel, play, refuse_wrong_end

S, F, B, C, K, U = (
    NodeOutcome.SUCCEEDED,
    NodeOutcome.FAILED,
    NodeOutcome.BLOCKED,
    NodeOutcome.CANCELLED,
    NodeOutcome.SKIPPED,
    NodeOutcome.UNREACHED,
)
GRAPHS = int(os.environ.get("HEADWAY_EXAMPLES", "200"))


def after(source: str, *accepts: NodeOutcome) -> RouteEdge:
    return RouteEdge(source, frozenset(accepts or {S}))


def on(source: str, *accepts: NodeOutcome) -> RouteEdge:
    """An alternative, which only `on` of the source names."""
    return RouteEdge(source, frozenset(accepts), required=False)


def came(edge: RouteEdge, outcome: NodeOutcome | None) -> Arrival:
    return Arrival(edge, outcome)


# -- joins -------------------------------------------------------------------------------------


@pytest.mark.req("V26", "V27")
@pytest.mark.parametrize(
    ("arrivals", "join", "expected"),
    [
        ([], Join.ALL, Go()),
        ([], Join.ANY, Go()),
        ([came(after("a"), S)], Join.ALL, Go()),
        ([came(after("a"), None)], Join.ALL, Pending("a")),
        ([came(after("a"), S), came(after("b"), None)], Join.ALL, Pending("b")),
        *[([came(after("a"), bad)], Join.ALL, Unreachable("a")) for bad in (F, B, C, U)],
        ([came(after("a"), K)], Join.ALL, PassedBy("a")),
        # A failure that success was wanted of decides before the others have ended.
        ([came(after("a"), None), came(after("b"), F)], Join.ALL, Unreachable("b")),
        ([came(after("a"), None), came(after("b"), K)], Join.ALL, Pending("a")),
        # One edge is enough, but all must be decided.
        ([came(after("a"), S), came(after("b"), F)], Join.ANY, Go()),
        ([came(after("a"), S), came(after("b"), None)], Join.ANY, Pending("b")),
        ([came(after("a"), K), came(after("b"), F)], Join.ANY, Unreachable("b")),
        ([came(after("a"), K), came(after("b"), K)], Join.ANY, PassedBy("a")),
        # Alternatives: one of them, beside all that is required.
        ([came(on("a", F), F)], Join.ALL, Go()),
        ([came(on("a", F), S)], Join.ALL, PassedBy("a")),
        ([came(on("a", F), S), came(on("b", F), F)], Join.ALL, Go()),
        ([came(on("a", F), S), came(on("b", F), S)], Join.ALL, PassedBy("a")),
        ([came(after("c"), S), came(on("a", F), F), came(on("b", F), S)], Join.ALL, Go()),
        ([came(after("c"), F), came(on("a", F), F)], Join.ALL, Unreachable("c")),
        ([came(after("c"), K), came(on("a", F), F)], Join.ALL, PassedBy("c")),
        ([came(on("a", F), B)], Join.ALL, PassedBy("a")),
        # A required edge that does not want success skips, it does not block.
        ([came(after("a", F), S)], Join.ALL, PassedBy("a")),
        ([came(after("a", S, K), K)], Join.ALL, Go()),
        ([came(after("a", *EVERY_OUTCOME), U)], Join.ALL, Go()),
    ],
)
def test_a_node_starts_waits_is_skipped_or_blocked(
    arrivals: list[Arrival], join: Join, expected: object
) -> None:
    assert judge(arrivals, join) == expected


def test_who_waits_for_success_goes_on_after_what_is_tolerated() -> None:
    source = NodeRule(tolerates=frozenset({F}))
    assert accepted_from(frozenset({S}), source) == {S, F}
    assert accepted_from(frozenset({K}), source) == {K}


@pytest.mark.parametrize(
    ("outcomes", "tolerates", "expected"),
    [
        ([S, S], (), S),
        ([], (), S),
        ([S, K], (), S),
        ([K, K], (), K),
        ([S, B, F], (), F),
        ([C, B], (), B),
        ([U, C], (), C),
        ([U, K], (), U),
        ([S, F], (F,), S),
        ([F, K], (F,), S),
        ([F, C], (F,), C),
    ],
)
def test_instances_have_one_outcome_together(
    outcomes: list[NodeOutcome], tolerates: tuple[NodeOutcome, ...], expected: NodeOutcome
) -> None:
    assert together(outcomes, tolerates) is expected


# -- loops -------------------------------------------------------------------------------------

# code -> commit -> ci -> merge; lint stands beside commit; db is waited for by ci alone.
CHANGE = {
    "code": NodeRule(),
    "db": NodeRule(),
    "commit": NodeRule((after("code"),)),
    "lint": NodeRule((after("code"),)),
    "ci": NodeRule((after("commit"), after("db"))),
    "merge": NodeRule((after("ci"),)),
    "report": NodeRule((after("commit"),)),
}
CI = LoopRule("ci", "code", frozenset({F}), 3)
MERGE = LoopRule("merge", "ci", frozenset({F}), 2)


def test_the_body_is_every_node_on_the_way() -> None:
    assert bodies(CHANGE, [CI]) == {"code": {"code", "commit", "ci"}}
    lint = LoopRule("lint", "code", frozenset({F}), 1)
    assert bodies(CHANGE, [CI, lint]) == {"code": {"code", "commit", "ci", "lint"}}
    itself = LoopRule("ci", "ci", frozenset({F}), 1)
    assert bodies(CHANGE, [itself, MERGE]) == {"ci": {"ci", "merge"}}


def test_an_edge_leaves_the_loops_that_its_end_is_not_in() -> None:
    loops = [CI, MERGE]
    found = bodies(CHANGE, loops)
    assert left_by("ci", "merge", found, loops) == ["code"]
    assert left_by("commit", "ci", found, loops) == []
    assert left_by("db", "ci", found, loops) == []
    assert left_by("merge", None, found, loops) == ["ci"]
    # The merge may go back to ci, and ci then to code: until then commit may run again.
    assert left_by("commit", "report", found, loops) == ["code", "ci"]
    assert left_by("commit", "report", bodies(CHANGE, [CI]), [CI]) == ["code"]
    # What is put back with a node that calls the loop need not wait for that.
    report = {**CHANGE, "merge": NodeRule((after("ci"), after("report")))}
    wide = LoopRule("merge", "commit", frozenset({F}), 1)
    found = bodies(report, [CI, wide])
    assert left_by("commit", "report", found, [CI, wide]) == ["code"]


def test_a_loop_is_called_until_it_is_used_up_or_ended() -> None:
    assert calls(CI, LoopCount(used=2), F)
    assert not calls(CI, LoopCount(used=3), F)
    assert not calls(CI, LoopCount(), S)
    assert not calls(CI, LoopCount(ended="cancelled"), F)
    assert final_outcome(CI, LoopCount(used=2), F) is F
    assert final_outcome(CI, LoopCount(used=3), F) is B
    assert final_outcome(CI, LoopCount(ended="cancelled"), F) is B
    assert final_outcome(CI, LoopCount(used=3), F, stopped=True) is F
    assert final_outcome(CI, LoopCount(used=3), C) is C
    assert final_outcome(None, LoopCount(), F) is F


def test_the_outermost_loop_is_taken_when_nothing_of_it_runs() -> None:
    within = {"outer": {"a", "b", "c"}, "inner": {"b", "c"}}
    assert next_loop(["inner"], [], within) == "inner"
    assert next_loop(["inner"], ["c"], within) is None
    assert next_loop(["inner"], ["a"], within) == "inner"
    assert next_loop(["inner", "outer"], [], within) == "outer"
    assert next_loop(["inner", "outer"], ["a"], within) is None
    assert next_loop([], [], within) is None


def begin(run: RunModel) -> None:
    """Start all that may start."""
    while found := run.startable():
        run.start(found[0])


def finish(run: RunModel, node: str, outcome: NodeOutcome = S) -> None:
    begin(run)
    run.end((node, 0), outcome)


def test_a_red_ci_sends_the_code_back_and_what_follows_waits() -> None:
    run = RunModel(CHANGE, [CI])
    for node in ("code", "db", "commit"):
        finish(run, node)
    begin(run)
    assert ("report", 0) not in run.running(), "what leaves the loop waits until it is over"
    run.end(("ci", 0), F)
    assert run.state() is RunState.RUNNING
    assert ("code", 0) in run.startable() and run.standing["code", 0].passes == 2
    assert run.standing["db", 0].passes == 1 and run.outcome("db") is S
    for node in ("code", "commit", "ci"):
        finish(run, node)
    begin(run)
    assert {("merge", 0), ("report", 0)} <= set(run.running())


def test_a_loop_that_is_used_up_is_blocked() -> None:
    run = RunModel(CHANGE, [CI._replace(times=1)])
    finish(run, "db")
    for _ in range(2):
        for node in ("code", "commit"):
            finish(run, node)
        finish(run, "ci", F)
    assert run.outcome("ci") is B and run.outcome("merge") is U
    begin(run)
    assert ("report", 0) in run.running()


def test_what_runs_beside_is_awaited_before_the_loop_is_taken() -> None:
    lint = LoopRule("lint", "code", frozenset({F}), 1)
    run = RunModel(CHANGE, [CI, lint])
    finish(run, "code")
    begin(run)
    run.end(("lint", 0), F)
    assert run.standing["code", 0].passes == 1, "commit still runs, on the old code"
    assert ("ci", 0) not in run.startable()
    run.end(("commit", 0), S)
    assert run.standing["code", 0].passes == 2
    assert run.counts["lint"].used == 1 and run.counts["ci"].used == 0


def test_a_cancel_by_a_person_ends_the_loop() -> None:
    run = RunModel(CHANGE, [CI, LoopRule("lint", "code", frozenset({F}), 1)])
    for node in ("code", "db"):
        finish(run, node)
    begin(run)
    run.end(("lint", 0), C, by_a_person=True)
    finish(run, "commit")
    finish(run, "ci", F)
    assert run.outcome("ci") is B and run.counts["ci"].ended == "cancelled"
    assert run.standing["code", 0].passes == 1


# -- the end of a run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "options", "expected"),
    [
        ([S, None], {}, RunState.RUNNING),
        ([S, S], {"called": True}, RunState.RUNNING),
        ([S, K, U], {}, RunState.SUCCEEDED),
        ([S, F, B], {}, RunState.FAILED),
        ([C, B], {}, RunState.BLOCKED),
        ([S, C], {}, RunState.CANCELLED),
        ([S, F], {"stopped": True}, RunState.CANCELLED),
        ([S, S], {"timed_out": True, "stopped": True}, RunState.FAILED),
    ],
)
def test_the_state_of_a_run(
    outcomes: list[NodeOutcome | None], options: dict[str, bool], expected: RunState
) -> None:
    named = {str(place): each for place, each in enumerate(outcomes)}
    rules = dict.fromkeys(named, NodeRule())
    assert run_state(named, rules, **options) is expected


def test_what_is_tolerated_counts_as_good() -> None:
    rules = {"a": NodeRule(tolerates=frozenset({F}))}
    assert run_state({"a": F}, rules) is RunState.SUCCEEDED
    assert run_state({"a": B}, rules) is RunState.BLOCKED


# -- random graphs -----------------------------------------------------------------------------


def random_rules(chance: random.Random) -> dict[str, NodeRule]:
    """A graph whose edges lead forward, and up to two nodes that run at its end."""
    names = [f"n{place}" for place in range(chance.randint(1, 12))]
    rules: dict[str, NodeRule] = {}
    for place, name in enumerate(names):
        edges = []
        for source in chance.sample(names[:place], min(place, chance.choice((0, 1, 1, 2, 3)))):
            accepts = chance.choice(
                ({S}, {S}, {S}, {F}, {F, B}, {S, K}, {K}, {C}, set(EVERY_OUTCOME))
            )
            found = accepted_from(frozenset(accepts), rules[source])
            edges.append(RouteEdge(source, found, required=S in found or chance.random() < 0.5))
        tolerates = frozenset({F}) if chance.random() < 0.15 else frozenset()
        join = Join.ANY if chance.random() < 0.2 else Join.ALL
        rules[name] = NodeRule(tuple(edges), join, tolerates)
    for place in range(chance.choice((0, 0, 1, 2))):
        ended = tuple(RouteEdge(name, EVERY_OUTCOME) for name in names)
        rules[f"finally{place}"] = NodeRule(ended, at_the_end=True)
    return rules


def random_loops(rules: dict[str, NodeRule], chance: random.Random) -> list[LoopRule]:
    """At most one a source, none that would wait for itself."""
    found: list[LoopRule] = []
    for source in [name for name, rule in rules.items() if not rule.at_the_end]:
        if chance.random() > 0.25:
            continue
        above = _above(rules, source)
        loop = LoopRule(
            source,
            chance.choice(sorted(above)),
            frozenset(chance.choice(({F}, {F}, {F, B}, {S}))),
            chance.randint(1, 3),
        )
        if not waits_in_a_circle(rules, [*found, loop]):
            found.append(loop)
    return found


def _above(rules: dict[str, NodeRule], node: str) -> set[str]:
    found, ahead = {node}, [node]
    while ahead:
        for edge in rules[ahead.pop()].edges:
            if edge.source not in found:
                found.add(edge.source)
                ahead.append(edge.source)
    return found


def waits_in_a_circle(rules: dict[str, NodeRule], loops: list[LoopRule]) -> bool:
    """Whether loops wait for each other: what leaves a body waits for all of it."""
    within = bodies(rules, loops)
    waits = {
        node: {edge.source for edge in rule.edges}
        | {
            other
            for edge in rule.edges
            for head in left_by(edge.source, node, within, loops)
            for other in within[head]
        }
        for node, rule in rules.items()
    }
    seen: dict[str, int] = {}

    def visit(node: str) -> bool:
        if seen.get(node) == 1:
            return True
        if seen.get(node) == 2:
            return False
        seen[node] = 1
        if any(visit(other) for other in waits[node]):
            return True
        seen[node] = 2
        return False

    return any(visit(node) for node in rules)


@pytest.mark.req("V26")
def test_random_runs_end_as_their_outcomes_require() -> None:  # fault J1
    chance = random.Random(20)
    looped = stops = 0
    for _ in range(GRAPHS):
        rules = random_rules(chance)
        loops = random_loops(rules, chance)
        looped += bool(loops)
        fans = {name: chance.randint(2, 3) for name in rules if chance.random() < 0.15}
        for _ in range(8):
            run = RunModel(rules, loops, fans)
            stop_at = chance.randint(0, 30) if chance.random() < 0.25 else None
            stops += stop_at is not None
            acts = 0

            def choose(count: int, run: RunModel = run, stop_at: int | None = stop_at) -> int:
                nonlocal acts
                acts += 1
                if acts == stop_at:
                    run.stop()
                    for instance in run.running():
                        if not run.rules[instance[0]].at_the_end:
                            run.end(instance, C)
                return chance.randrange(count)

            def outcome(node: str) -> NodeOutcome:
                return chance.choice((S, S, S, S, F, F, B, K, C))

            passes = 1 + sum(loop.times for loop in loops)
            play(run, choose, outcome, most=4 + 3 * 2 * len(run.standing) * passes)
            assert run.state() is not RunState.RUNNING
            refuse_wrong_end(run, run.stopped)
            for (node, _), each in run.standing.items():
                if run.rules[node].at_the_end:
                    assert each.starts == 1, "what is to run at the end does, once"
    assert looped > GRAPHS // 10 and stops > GRAPHS // 2
