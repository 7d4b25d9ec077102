"""The worker as one `@reboot` line of the user's crontab; all other lines stay as they are."""

from typing import NamedTuple

from headway.admin.service.plan import ServicePlan, cron_line, is_ours
from headway.admin.service.programs import ask, demand, is_there
from headway.base.errors import HeadwayError

_NONE_YET = ("no crontab for", "no such file")  # in the words of the crons that there are


class LineState(NamedTuple):
    line: str
    current: bool  # what would be written now, but for the PATH, is what stands there


def cron_is_there() -> bool:
    return is_there("crontab")


def state(plan: ServicePlan) -> LineState | None:
    """Our line; None if there is none."""
    found = [line for line in _lines() if is_ours(line, plan)] if cron_is_there() else []
    current = list(map(_compared, found)) == [_compared(cron_line(plan))]
    return LineState(found[0], current) if found else None


def install(plan: ServicePlan) -> bool:
    """Have our line there, once; False if it was so already."""
    line, before = cron_line(plan), _lines()
    others = [each for each in before if not is_ours(each, plan)]
    if [each for each in before if is_ours(each, plan)] == [line]:
        return False
    _replace([*others, line])
    return True


def remove(plan: ServicePlan) -> bool:
    """Take our line away; False if there was none."""
    before = _lines() if cron_is_there() else []
    others = [each for each in before if not is_ours(each, plan)]
    if others == before:
        return False
    _replace(others)
    return True


def _compared(line: str) -> str:
    """Without the PATH, which is another one in many a shell."""
    return line.partition(" exec ")[2]


def _lines() -> list[str]:
    answer = ask("crontab", ["-l"])
    if answer.code != 0:
        if any(words in answer.err.lower() for words in _NONE_YET):
            return []
        raise HeadwayError(f"crontab -l: {answer.why()}")
    return answer.out.removesuffix("\n").split("\n") if answer.out else []


def _replace(lines: list[str]) -> None:
    demand("crontab", ["-"], given="".join(f"{line}\n" for line in lines))
