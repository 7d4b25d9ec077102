"""The words that pages take in their query."""

from collections.abc import Mapping

from headway.base.shapes import TEXT, TEXTS, Schema, one_of

MOST_AT_ONCE = 1000  # jobs that one form names

OF_PAGES: Mapping[str, Schema] = {
    "region": {**TEXT, "pattern": "^[a-z_]{1,40}$"},
    "said": TEXT,
}
SPAN: Mapping[str, Schema] = {"span": {**one_of("1h", "24h", "7d"), "default": "1h"}}
BULK: Mapping[str, Schema] = {
    "verb": one_of("cancel", "retry"),
    "job": {**TEXTS, "maxItems": MOST_AT_ONCE},
}
