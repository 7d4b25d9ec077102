"""What is sent of an answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.web.calls import Reply

WORDS = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
    max_leaves=20,
)


@given(JSON.filter(lambda document: document is not None))
def test_a_document_is_the_same_json_as_in_one_call(document: Any) -> None:
    reply = Reply(document=document)
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    assert reply.content() == reply.rendered().content() == compact.encode()


@pytest.mark.parametrize("document", [{}, [], {"a": []}, {"a": (), "b": {}}, {"a": [1, "é"]}])
def test_it_has_no_spaces(document: Any) -> None:
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    assert Reply(document=document).content() == compact.encode()
