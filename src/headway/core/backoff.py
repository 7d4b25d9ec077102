"""How long to wait before trying again. Pure: the caller brings the random number."""

from headway.core.model import RetryPolicy

SECOND = 1_000_000

# A job whose program cannot be executed is tried three times: docs/protocols.md, section 14.
LAUNCH_DELAYS = (1 * SECOND, 5 * SECOND)
LAUNCH_STRIKES = len(LAUNCH_DELAYS) + 1

EARLIER_DELAY = 5 * SECOND  # until it is seen whether an earlier start has ended by now
HOST_PROBE_CAP = 60 * SECOND


def retry_delay(policy: RetryPolicy, nth: int, chance: float) -> int:
    """The n-th retry (from 1) waits base * 2^(n-1), at most the cap, plus up to `jitter` of it."""
    delay = min(policy.cap, policy.base << min(nth - 1, 60))
    return delay + int(delay * policy.jitter * chance)


def probe_delay(failures: int) -> int:
    """The host is probed after 1, 2, 4 ... 60 seconds."""
    return min(HOST_PROBE_CAP, SECOND << min(failures - 1, 10))
