"""Mistakes in what all rooms stand on."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "base/shapes.py:_of_text",
        'schema.get("minLength", 0)',
        "0",
        "tests/web/test_queries.py::test_what_is_wrong_is_said",
    ),
)
