"""Jobs in a store of an older schema, which may lack columns that they have today."""

from collections.abc import Mapping

import apsw

from headway.store.queries import migrations
from headway.store.rows import COLUMNS
from headway.store.sqlite.database import DIALECT


def columns_of_schema(number: int) -> Mapping[str, str]:
    """What `Queries` is given for statements that such a store understands. A job gets no column
    that came later, and is read as if that one were empty."""
    connection = apsw.Connection(":memory:")
    for step in migrations(DIALECT):
        if step.number <= number:
            connection.execute(step.script)
    there = {row[1] for row in connection.execute("pragma table_info(jobs)")}
    connection.close()
    new = [each for each in COLUMNS["NEW"].split(", ") if each in there]
    read = [each if each in there else f"null as {each}" for each in COLUMNS["JOB"].split(", ")]
    return {
        **COLUMNS,
        "NEW": ", ".join(new),
        "VALUES": ", ".join(f":{each}" for each in new),
        "JOB": ", ".join(read),
    }
