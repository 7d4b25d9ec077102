"""Concurrency policies: which limits a job takes while it runs.

A policy names keys, each a kind and a word (`resource:ollama`); how many may run at once under a
key is a setting (`scheduler.limits.resource.ollama`). A key without a limit counts and holds
nobody. Three are built in; others are found by entry point. They are pure: the same job, the same
keys.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headway.core.model import Job, Rate

SLOT = "slot"  # what a job takes; its limit is `scheduler.max_active`
ENTRY = "jobsfile"  # what a job of the jobs file takes instead; its limit is `jobsfile.parallel`
RATE = "rate"  # of these keys it is not what runs that counts, but what was started


class ConcurrencyPolicy(Protocol):
    """`keys` are `NAME:WORD`, with the policy's own name."""

    @property
    def name(self) -> str: ...

    def keys(self, job: Job, /) -> tuple[str, ...]: ...


class PerType:
    name = "type"

    def keys(self, job: Job, /) -> tuple[str, ...]:
        return (f"type:{job.type}",)


class PerResource:
    name = "resource"

    def keys(self, job: Job, /) -> tuple[str, ...]:
        return tuple(f"resource:{each}" for each in job.resources)


class PerTarget:
    name = "target"

    def keys(self, job: Job, /) -> tuple[str, ...]:
        return () if job.target is None else (f"target:{job.target}",)


BUILT_IN: tuple[ConcurrencyPolicy, ...] = (PerType(), PerResource(), PerTarget())


def place_of(job: Job) -> str:
    """Which place the job takes: entries of the jobs file that are not agents have their own."""
    return ENTRY if job.is_entry else SLOT


def keys_of(job: Job, policies: Sequence[ConcurrencyPolicy]) -> tuple[str, ...]:
    """The keys that the job takes beside its slot, by every policy. A job that takes no slot names
    what it takes instead."""
    keys = tuple(key for policy in policies for key in policy.keys(job))
    return (ENTRY, *keys) if job.is_entry else keys


def held_by(keys: tuple[str, ...]) -> tuple[str, ...]:
    """All that a running job with these keys holds, with its slot if it has one."""
    return keys if ENTRY in keys else (SLOT, *keys)


def rate_keys(job: Job) -> tuple[str, ...]:
    """The rates that a start of this job counts for, and is held up by: the one that the settings
    may say for each key, and its own."""
    keys = []
    for rate in job.rates:
        keys.append(f"{RATE}:{rate.key}")
        if rate.most is not None:
            keys.append(f"{RATE}:{rate.key}={rate.most}/{rate.period}")
    return tuple(keys)


def own_rate(key: str) -> Rate | None:
    """The numbers of a rate that a job brought itself, out of its key; None: it has none."""
    word, equals, numbers = key.removeprefix(f"{RATE}:").partition("=")
    if not equals:
        return None
    most, _, period = numbers.partition("/")
    return Rate(word, int(most), int(period))


class LimitTopic(NamedTuple):
    """The topic under which a job is parked that lacks a limit. Jobs of one queue are parked
    together, since only a host that serves it may start them. Entries of the jobs file are parked
    apart from jobs that need a slot: they may start while no slot is free."""

    key: str
    queue: str = ""
    of_entries: bool = False


def limit_topic(key: str, job: Job) -> str:
    apart = f"@{ENTRY}" if job.is_entry else ""
    return f"limit:{key}@{job.queue}{apart}" if job.queue or apart else f"limit:{key}"


def read_topic(topic: str) -> LimitTopic:
    key, _, rest = topic.removeprefix("limit:").partition("@")
    queue, _, apart = rest.partition("@")
    return LimitTopic(key, queue, apart == ENTRY)
