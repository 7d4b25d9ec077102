"""The words that pages take in their query."""

from collections.abc import Mapping

from headway.web.shapes import TEXT, TEXTS, Schema, one_of

MOST_AT_ONCE = 1000  # jobs that one form names

OF_PAGES: Mapping[str, Schema] = {
    "region": {**TEXT, "pattern": "^[a-z_]{1,40}$"},
    "said": TEXT,
}
BULK: Mapping[str, Schema] = {
    "verb": one_of("cancel", "retry"),
    "job": {**TEXTS, "maxItems": MOST_AT_ONCE},
}
