"""The tokens of claims."""

import os


def tokens(now: int, number: int) -> list[str]:
    """For claims: not to be guessed, and growing with time."""
    when, random = f"{now & 0xFF_FFFF_FFFF_FFFF:014x}", os.urandom(9 * number).hex()
    return [when + random[at : at + 18] for at in range(0, 18 * number, 18)]
