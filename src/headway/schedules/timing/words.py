"""Rules as people would say them. Told from the values that match, not from how they were written,
so that the words cannot say anything else than the rule does."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from cronsim import CronSim

from headway.schedules.timing.rules import Cron, Every, Once, TimingRule

MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", CronSim.LAST: "last"}
UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000))
SECOND = 1_000_000
# More times of a day than these are shown as minutes and hours.
MOST_TIMES = 6
_MINUTES = range(60)
_HOURS = range(24)


def in_words(rule: TimingRule) -> str:
    match rule:
        case Cron():
            return f"{_cron(rule.calendar)}, {rule.timezone}"
        case Every():
            return f"every {_period(rule.period)}"
        case Once():
            moment = datetime.fromtimestamp(rule.at // SECOND, UTC)
            return f"once, on {moment:%Y-%m-%d} at {moment:%H:%M:%S} UTC"
        case _:
            raise TypeError(rule)


def _cron(calendar: CronSim) -> str:
    time, at_times = _time(sorted(calendar.minutes), sorted(calendar.hours))
    day = _day(calendar)
    return f"{time} {day}" if day else f"{time} every day" if at_times else time


def _time(minutes: list[int], hours: list[int]) -> tuple[str, bool]:
    """The words for the minute and the hour, and whether these are single times of a day."""
    if len(minutes) * len(hours) <= MOST_TIMES:
        return f"at {_list([_clock(hour, minute) for hour in hours for minute in minutes])}", True
    step, hour_step = _step(minutes, _MINUTES), _step(hours, _HOURS)
    beat = f"every {_count(step, 'minute')}" if step else ""
    if len(minutes) == 1 and hour_step:
        past = f" at minute {minutes[0]}" if minutes[0] else ""
        return f"every {_count(hour_step, 'hour')}{past}", False
    if beat and hour_step == 1:
        return beat, False
    if beat and hours == list(range(hours[0], hours[-1] + 1)):
        return f"{beat} from {_clock(hours[0], 0)} to {_clock(hours[-1], minutes[-1])}", False
    text = beat or f"at {_numbers('minute', minutes)}"
    if len(hours) == len(_HOURS):
        return f"{text} of every hour", False
    return f"{text} of {_numbers('hour', hours)}", False


def _day(calendar: CronSim) -> str:
    any_day = set(range(1, 32)) <= calendar.days
    any_weekday = set(range(7)) <= {each % 7 for each in calendar.weekdays if isinstance(each, int)}
    if not calendar.day_and and (any_day or any_weekday):
        any_day = any_weekday = True  # one of both is enough
    months = "" if len(calendar.months) == len(MONTHS) else _runs(calendar.months, MONTHS, 1)
    month = months or "the month"
    day = "" if any_day else f"on {_days(calendar.days, month)}"
    weekday = "" if any_weekday else _weekdays(calendar.weekdays, month)
    if day and weekday:
        both = f"{day} if it is {weekday.removeprefix('on ')}"
        either = f"{day}, and {'on ' * (not weekday.startswith('on '))}{weekday}"
        text = both if calendar.day_and else either
    else:
        text = day or weekday
    if not months:
        return text
    return text if month in text else f"{text or 'every day'} in {months}"


def _days(days: Collection[int], month: str) -> str:
    numbers = sorted(each for each in days if each > 0)
    text = [f"the {each}" for each in _run_words(numbers, _ordinal)]
    if step := _even(numbers):
        first, last = _ordinal(numbers[0]), _ordinal(numbers[-1])
        text = [f"every {_ordinal(step)} day from the {first} to the {last}"]
    if CronSim.LAST in days:
        text.append("the last day")
    if CronSim.LAST_WEEKDAY in days:
        text.append("the last working day (Monday to Friday)")
    return f"{_list(text)} of {month}"


def _weekdays(weekdays: Iterable[int | tuple[int, int]], month: str) -> str:
    plain: set[int] = set()
    counted: set[tuple[int, int]] = set()
    for each in weekdays:
        if isinstance(each, int):
            plain.add((each - 1) % 7)
        else:
            counted.add((each[1] % 10_000, (each[0] - 1) % 7))
    text = _run_words(plain, WEEKDAYS.__getitem__)
    last = CronSim.LAST % 10_000
    text += [
        f"the {NTH[CronSim.LAST if nth == last else nth]} {WEEKDAYS[day]} of {month}"
        for nth, day in sorted(counted)
    ]
    return text[0] if len(text) == 1 and " to " in text[0] else f"on {_list(text)}"


def _numbers(name: str, values: Sequence[int]) -> str:
    if step := _even(values):
        return f"every {_ordinal(step)} {name} from {values[0]} to {values[-1]}"
    return f"{name}{'s' if len(values) > 1 else ''} {_list(_run_words(values, str))}"


def _even(values: Sequence[int]) -> int | None:
    """The step between these values, if it is the same and worth a word."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(values) > 3 and len(steps) == 1 and steps != {1} else None


def _runs(values: Iterable[int], names: Sequence[str], first: int) -> str:
    return _list(_run_words(set(values), lambda each: names[each - first]))


def _run_words(values: Collection[int], name: Callable[[int], str]) -> list[str]:
    """Neighbours, from three on, as `first to last`."""
    text: list[str] = []
    run: list[int] = []
    for each in [*sorted(values), None]:
        if run and (each is None or each != run[-1] + 1):
            if len(run) > 2:
                text.append(f"{name(run[0])} to {name(run[-1])}")
            else:
                text += map(name, run)
            run = []
        if each is not None:
            run.append(each)
    return text


def _step(values: list[int], whole: range) -> int | None:
    """The even step that these values take around the clock, if they do."""
    step = len(whole) // len(values)
    return step if values == list(whole[::step]) and len(whole) % step == 0 else None


def _period(micros: int) -> str:
    parts = []
    for name, size in UNITS:
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    if micros:
        seconds = f"{micros / SECOND:.6f}".rstrip("0").rstrip(".")
        parts.append(f"{seconds} second{'' if seconds == '1' else 's'}")
    text = " ".join(parts)
    return text.removeprefix("1 ") if len(parts) == 1 else text


def _count(number: int, name: str) -> str:
    return name if number == 1 else f"{number} {name}s"


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02d}:{minute:02d}"


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
