"""What shows and takes the fields of a job does so by their table."""

from headway.core.model import FIELDS, JobSpec
from headway.functions.task_options import OPTIONS
from headway.jobs.graph_file import FORMS
from headway.jobs.request import Request
from headway.jobs.views.documents import SHOWS
from headway.jobs.views.fields import FIELDS as OF_LISTS

WORDS = {field.name for field in FIELDS if field.word}


def test_lists_show_every_key_of_the_document() -> None:
    assert [name for name in OF_LISTS if name in {field.shown for field in FIELDS}] == [
        field.shown for field in FIELDS if field.shown
    ]


def test_every_way_to_show_a_field_is_there_and_used() -> None:
    assert {*SHOWS} == {field.show for field in FIELDS if field.shown} - {"made"}


def test_graphs_and_tasks_take_the_words_of_the_table() -> None:
    assert {*FORMS} & OPTIONS & {*Request._fields} & {*JobSpec._fields} >= WORDS
    assert all(FORMS[word].field == word for word in WORDS)
