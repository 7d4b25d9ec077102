"""What a server tells of commits, unasked: the store, the number, whose it was, what it did."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from headway.store.pgtexts import CALLS, WAITS


class Notice(NamedTuple):
    """What the server tells of a commit."""

    store: str
    number: int  # 0: not known
    own: bool
    calls: bool  # it only added plain ones
    waits: bool  # it only added what waits for others


def notice_in(payload: str, own: deque[str]) -> Notice:
    """Those with a token of our `own` tell of our own commits. An older Headway tells only its
    token."""
    words = payload.split(" ")
    store, number, token, *_ = words if len(words) > 2 else ("", "0", payload)
    is_own = token in own
    if is_own:
        own.remove(token)
    return Notice(store, int(number), is_own, words[-1] == CALLS, words[-1] == WAITS)


def news_among(
    told: Sequence[Notice], key: int | None, seen: int | None
) -> tuple[list[Notice] | None, int | None]:
    """Those of others' commits to this store after the one that was seen last, which come in their
    order; and the one that is seen last now. None: the server must be asked, for one is missing, as
    when the line was lost between two, or has no number."""
    if seen is None or not told or not all(each.number for each in told):
        return None, seen
    newest, news = seen, []
    for each in told:
        if each.store == str(key) and each.number > newest:
            if each.number > newest + 1:
                return None, seen
            newest = each.number
            if not each.own:
                news.append(each)
    return news, newest
