"""Mistakes in what all rooms stand on."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "base/shapes.py:_of_text",
        'schema.get("minLength", 0)',
        "0",
        "tests/web/test_queries.py::test_what_is_wrong_is_said",
    ),
    Mutant(
        "base/new_home.py:make_home",
        "suppress(FileNotFoundError, HeadwayError)",
        "suppress(FileNotFoundError)",
        "tests/worker/test_spellings.py::test_a_folder_that_gets_its_name_meanwhile_is_no_error",
    ),
    Mutant(
        "base/whole_file.py:write_whole",
        "os.unlink(fresh)",
        "pass",
        "tests/base/test_whole_file.py::test_nothing_is_left_behind_where_it_cannot_be_put",
    ),
)
