"""What is read of the disk: a file, not many more bytes than it may have, and never a wait."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.base.errors import InvalidInputError, NotFoundError
from headway.schedules.jobsfile.nodes import LARGEST_FILE
from headway.schedules.jobsfile.reader import file_content, read_jobs_file


def test_the_content_of_a_file_is_read_and_no_more_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes(b"jobs: {}\n")
    assert read_jobs_file(file_content(str(path))) == []
    path.write_bytes(b"#" * (LARGEST_FILE + 1000))
    assert len(file_content(str(path))) == LARGEST_FILE + 1


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no"):
        file_content(str(tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InvalidInputError, match=r"is not a file|cannot read"):
            file_content(str(path))


def test_to_find_no_file_loads_no_yaml() -> None:
    """Every worker looks for a jobs file, and most have none."""
    script = (
        "import sys\nfrom headway.schedules.jobsfile.reader import file_content\n"
        "try: file_content('/none')\nexcept Exception: print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
