"""A worker on PostgreSQL whose server ends its connections while jobs run."""

import os
from pathlib import Path

import pytest

from torture.terminations import torture

TIMES = int(os.environ.get("HEADWAY_TERMINATIONS", "8"))  # 50 is what `make torture` does


@pytest.mark.long
def test_a_worker_whose_connections_are_ended_lives_and_ends_each_job_once(  # fault D1
    tmp_path: Path, postgres_url: str
) -> None:
    told = torture(
        tmp_path, postgres_url, times=TIMES, jobs=40 * TIMES if TIMES > 8 else 60, seed=1
    )
    assert told.violations == []
    assert told.ended >= TIMES
