"""Claims that came with a copy of a home, and that only the original can own.

A copied home is another host (`headway.base.host`). Its store still says that jobs run, but their
processes, their locks and whatever they will write are the original's: nothing of them may be
touched from here, and nothing that becomes of them is ever seen here.
"""

import os
from collections.abc import Iterable

from headway.base.home import Home
from headway.base.host import Host
from headway.core.model import Claim


def copied(claims: Iterable[Claim], host: Host, home: Home) -> list[Claim]:
    """Of these claims those that were copied together with the store, with their folders in this
    home. Only the store in a home's own folder is copied with it; another one is shared."""
    if home.store_url is not None:
        return []
    foreign = [each for each in claims if each.host_id != host.id]
    originals = {each.home for each in foreign}
    shared = {each for each in originals if _is_same_store(each, home)}
    return [
        here(claim, host)
        for claim in foreign
        if _of_own_store(claim)
        and (claim.host_id in host.before or claim.home not in {host.home, *shared})
    ]


def here(claim: Claim, host: Host) -> Claim:
    """The same claim with its folder in this home, to which it moved or was copied."""
    if claim.home == host.home:
        return claim
    folder = os.path.join(host.home, os.path.relpath(claim.folder, claim.home))
    return claim._replace(folder=folder, home=host.home)


def _of_own_store(claim: Claim) -> bool:
    """Whether it was made by a worker of the home that the store lies in: one that came over a URL
    has its jobs in a part of its own."""
    first = os.path.relpath(claim.folder, claim.home).split(os.sep)[0]
    return first not in ("stores", os.pardir)


def _is_same_store(original: str, home: Home) -> bool:
    """Two homes with links to one file are no copies of each other."""
    try:
        return original != home.path and os.path.samefile(Home(original).database, home.database)
    except OSError:
        return False
