"""Random workflow runs end as the outcomes of their nodes require, on a worker that dies often.

`HEADWAY_EXAMPLES=2000 make test ARGS=tests/simulation/test_flows.py` plays more of them.
"""

import os
from pathlib import Path

import pytest

from simulation.flows import FlowWorld, play_many
from simulation.running import in_file, on_server
from simulation.world import SimulatedClock

GRAPHS = int(os.environ.get("HEADWAY_EXAMPLES", "100"))
SEED = int(os.environ.get("HEADWAY_FLOW_SEED", "1"))


def refuse_silence(told: dict[str, int]) -> None:
    """Enough must have happened for the silence of the checks to mean something."""
    assert told["runs"] == GRAPHS
    assert told["loops"] > GRAPHS // 10 and told["fans"] > GRAPHS // 20
    assert told["stopped"] > GRAPHS // 20 and told["passes"] > GRAPHS // 5


@pytest.mark.req("V26")
@pytest.mark.parametrize("crashes", [False, True], ids=["calm", "crashes"])
def test_random_runs_in_a_file(tmp_path: Path, crashes: bool) -> None:  # fault J1
    clock = SimulatedClock()
    store = in_file(str(tmp_path), clock)
    world = FlowWorld(store, clock, str(tmp_path / ".headway"), crashes=crashes)
    refuse_silence(play_many(world, SEED, GRAPHS))
    store.close()


@pytest.mark.req("V26")
def test_random_runs_on_a_server(tmp_path: Path, postgres_server: str) -> None:
    clock = SimulatedClock()
    with on_server(postgres_server) as open_there:
        store = open_there(str(tmp_path), clock)
        world = FlowWorld(store, clock, str(tmp_path / ".headway"), crashes=True)
        refuse_silence(play_many(world, SEED + 1, GRAPHS))
        store.close()
