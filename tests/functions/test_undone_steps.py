"""A step that a server has undone never was: what it had found out is of no use to the next."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from lanes import Lanes

from headway.base.errors import StoreUndoneError
from headway.functions.app import Handle

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

# While there is a row of trouble, no change can be committed.
TROUBLE = """
create table trouble (number bigint);
create function trouble() returns trigger language plpgsql as $$
begin
  if exists (select 1 from trouble) then
    raise exception 'in the way' using errcode = 'serialization_failure';
  end if;
  return null;
end $$;
create constraint trigger trouble after insert on events deferrable initially deferred
  for each row execute function trouble();
"""


@pytest.fixture
def operator(lanes: Lanes, store_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(TROUBLE)
        yield connection


def second_of(lanes: Lanes) -> list[Handle[Any]]:
    """The first has ended, the second runs, and the third waits for it."""
    handles = [lanes.hold.submit("a")]
    handles.append(lanes.hold.submit("b", after=[handles[-1]]))
    handles.append(lanes.hold.submit("c", after=[handles[-1]]))
    lanes.bench.until(lambda: lanes.running() == [handles[0].job_id], "the first")
    lanes.let_go("a", handles[0])
    lanes.bench.until(lambda: lanes.running() == [handles[1].job_id], "the second")
    return handles


def test_the_end_of_a_call_survives_that_its_step_was_undone(
    lanes: Lanes, operator: psycopg.Connection[Any]
) -> None:
    """# fault D2"""
    handles = second_of(lanes)
    lanes.let_go("b", handles[1])
    operator.execute("insert into trouble values (1)")
    with pytest.raises(StoreUndoneError):
        lanes.step()
    operator.execute("delete from trouble")
    lanes.step()
    assert lanes.settled(*handles) == ["succeeded", "succeeded", None]
    assert lanes.running() == [handles[2].job_id]
