"""Notices of a server about commits: the store, the number, the writer, the effect."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from headway.store.postgres.statements import CALLS


class Notice(NamedTuple):
    """The server's notice of a commit."""

    store: str
    number: int  # 0: not known
    own: bool
    calls: bool  # it only added plain ones


def notice_in(payload: str, own: deque[str]) -> Notice:
    """Those with a token of our `own` are about our own commits. An older Headway sends only its
    token, or another last word, which means nothing here."""
    words = payload.split(" ")
    store, number, token, *_ = words if len(words) > 2 else ("", "0", payload)
    is_own = token in own
    if is_own:
        own.remove(token)
    return Notice(store, int(number), is_own, words[-1] == CALLS)


def news_among(
    notices: Sequence[Notice], key: int | None, seen: int | None
) -> tuple[list[Notice] | None, int | None]:
    """Those of others' commits to this store after the one that was seen last, which come in their
    order; and the one that is seen last now. None: the server must be asked, for one is missing, as
    when the line was lost between two, or has no number."""
    if seen is None or not notices or not all(each.number for each in notices):
        return None, seen
    newest, news = seen, []
    for each in notices:
        if each.store == str(key) and each.number > newest:
            if each.number > newest + 1:
                return None, seen
            newest = each.number
            if not each.own:
                news.append(each)
    return news, newest
