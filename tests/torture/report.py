"""What a run prints: the checks with their counts, kills by kind, jobs by status, the evidence."""

from collections import Counter
from collections.abc import Iterator

from torture.arena import Tortured
from torture.checker import Evidence, Result

SHOWN = 10


def lines(
    title: str, given: Evidence, results: dict[str, Result], tortured: Tortured
) -> Iterator[str]:
    kinds = Counter(kill.kind for kill in given.kills)
    modes = Counter({kill.strike: kill.mode for kill in given.kills}.values())
    statuses = Counter(job.status for job in given.rows.jobs.values())
    yield f"{title}: {tortured.strikes} kills, {tortured.seconds:.0f} s"
    yield f"  killed   {sum(kinds.values())} processes: {_counts(kinds)}"
    yield f"  at once  {_counts(modes)}"
    yield f"  jobs     {sum(statuses.values())}: {_counts(statuses)}"
    yield f"  ledger   {len(given.lines)} lines"
    yield f"  {'check':<32}{'looked at':>10}{'violations':>12}"
    for name, result in results.items():
        yield f"  {name:<32}{result.looked_at:>10}{len(result.violations):>12}"
    if not tortured.came_to_rest:
        yield "  it did not come to rest in time"


def evidence(results: dict[str, Result]) -> Iterator[str]:
    for name, result in results.items():
        if result.violations:
            yield f"{name}: {len(result.violations)}"
        for violation in result.violations[:SHOWN]:
            yield f"  {violation.text}"
            yield from (f"    {line}" for line in violation.evidence)
        if len(result.violations) > SHOWN:
            yield f"  and {len(result.violations) - SHOWN} more"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common()) or "none"
