"""Write a workflow file to begin with, and the schema that editors read beside it."""

import json
import os

from headway.base.errors import ConflictError, InvalidInputError
from headway.base.home import Home
from headway.base.whole_file import write_whole
from headway.workflows.files import ENDING, FILE_NAME, shown_path, workflows_folder
from headway.workflows.schema import schema_document

STARTERS = {
    "build": "build, test side by side, publish when a person agrees",
    "agent": "a coding agent, until the checks are green",
    "nightly": "housekeeping that reports at the end",
    "draft": "an agent writes a plan, kept on a branch",
    "approve": "a person agrees, an agent implements, the checks decide",
    "merge": "a plan's branch is merged, conflicts are resolved",
}
USUAL_STARTER = "build"
SCHEMA_FILE = "workflow.schema.json"
_FOLDER = os.path.join(os.path.dirname(__file__), "starters")
_FIRST_LINES = f"""\
#:schema ../{SCHEMA_FILE}
# That line is for editors (taplo). `headway workflows init` writes the schema, so it works offline.
"""


def starter_text(name: str) -> str:
    """One of STARTERS, with the line that tells an editor where its schema is."""
    with open(os.path.join(_FOLDER, name + ENDING), encoding="utf-8") as file:
        return f"{_FIRST_LINES}\n{file.read()}"


def init_workflow(home: Home, name: str, starter: str) -> str:
    """Make the file of a new workflow; its path as it is shown. No file is ever overwritten, even
    if another process makes it in the same moment."""
    if not FILE_NAME.fullmatch(name):
        raise InvalidInputError(
            f"'{name}' is no name of a workflow; give letters, digits, '.', '_' and '-'"
        )
    if starter not in STARTERS:
        raise InvalidInputError(f"there is no starter '{starter}'; there are {', '.join(STARTERS)}")
    shown = shown_path(home, name)
    path = os.path.join(workflows_folder(home), name + ENDING)
    try:
        os.makedirs(workflows_folder(home), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(starter_text(starter))
        _write_schema(os.path.join(home.path, SCHEMA_FILE))
    except FileExistsError:
        raise ConflictError(f"{shown} is there already; take another name") from None
    except OSError as error:
        raise InvalidInputError(f"{error.filename or shown}: {error.strerror}") from None
    return shown


def _write_schema(path: str) -> None:
    """That of this version; it is made anew whole, because an editor may be reading it."""
    text = json.dumps(schema_document(), indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text, mode=0o666)
