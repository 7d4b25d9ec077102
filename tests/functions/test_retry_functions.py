"""Which exceptions of a function are worth another try: by class, also by a base class."""

from collections.abc import Callable

import pytest
from shop import Shop

from headway.base.errors import InvalidInputError
from headway.functions.app import App
from headway.functions.host.call import class_names
from headway.testing import drain, using

MakeShop = Callable[..., Shop]

TASKS = """
class Busy(ConnectionError): pass

@app.task(retries=1, retry_base=0, retry_on=["OSError"])
def by_base(): raise Busy("x")

@app.task(retries=1, retry_base=0, retry_on=["shop_tasks.Busy"])
def by_whole_name(): raise Busy("x")

@app.task(retries=1, retry_base=0, retry_on=[ConnectionError])
def by_class(): raise Busy("x")

@app.task(retries=1, retry_base=0, retry_on=["Busy", "TimeoutError"])
def by_another(): raise ValueError("x")

@app.task(retries=1, retry_base=0, retry_on=["ValueError", "3"])
def by_exit_code(): sys.exit(3)

@app.task(retries=1, retry_base=0, retry_on=["ValueError"])
def by_no_exit_code(): sys.exit(3)

@app.task(retries=1, retry_base=0, retry_on=["Exception"])
async def in_a_coroutine(): raise KeyError("x")
"""


@pytest.mark.req("D13")
def test_a_function_is_tried_again_on_the_classes_that_it_names(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    names = ("by_base", "by_whole_name", "by_class", "by_another", "by_exit_code")
    names += ("by_no_exit_code", "in_a_coroutine")
    handles = {name: getattr(shop, name).submit() for name in names}
    shop.ended(*handles.values())
    tries = {name: len(shop.bench.client.jobs.chain(each.job_id)) for name, each in handles.items()}
    assert tries == {
        "by_base": 2,
        "by_whole_name": 2,
        "by_class": 2,
        "by_another": 1,
        "by_exit_code": 2,
        "by_no_exit_code": 1,
        "in_a_coroutine": 2,
    }


def test_the_classes_are_known_after_a_crash_of_the_worker(make_shop: MakeShop) -> None:
    """The journal has them, so whoever settles the call decides the same."""
    shop = make_shop(
        "@app.task(retries=1, retry_base=0, retry_on=['OSError'])\n"
        "def f():\n"
        "    note(f'attempt-{current().attempt}')\n"
        "    until('go')\n"
        "    raise ConnectionError('x')\n"
    )
    handle = shop.f.submit()
    shop.until_noted("attempt-1")
    shop.bench.crash().recover()
    shop.touch("go")
    shop.ended(handle)
    assert len(shop.bench.client.jobs.chain(handle.job_id)) == 2


def test_in_tests_of_users_the_same_holds(tmp_path: object) -> None:
    app = App()

    @app.task(retries=2, retry_base="10s", retry_cap="15s", retry_on=["LookupError"])
    def find(what: str) -> None:
        raise KeyError(what) if what == "key" else ValueError(what)

    with using(app, home=str(tmp_path)) as clock:
        began = clock.now()
        key, value = find.submit("key"), find.submit("value")
        drain(app)
        assert len(app.client.jobs.chain(key.job_id)) == 3
        assert len(app.client.jobs.chain(value.job_id)) == 1
        assert 25 <= (clock.now() - began) / 1_000_000 < 26, "10 s, and 15 s instead of 20"


def test_classes_are_named_with_all_they_are_made_from() -> None:
    class BothError(ConnectionError, KeyError):
        pass

    names = class_names(BothError())
    own = "test_classes_are_named_with_all_they_are_made_from.<locals>.BothError"
    assert names[:2] == [own, f"{__name__}.{own}"]
    for name in ("ConnectionError", "builtins.OSError", "KeyError", "LookupError", "Exception"):
        assert name in names
    assert "object" not in names


def test_a_class_that_will_not_say_its_name_does_no_harm() -> None:
    class Silent(type):
        def __getattribute__(cls, name: str) -> object:
            raise RuntimeError("nobody may ask")

    class SilentError(Exception, metaclass=Silent):
        pass

    assert class_names(SilentError()) == []


def test_a_word_that_can_be_no_class_is_refused(make_shop: MakeShop) -> None:
    shop = make_shop("@app.task\ndef f(): pass\n")
    for word in ("Value Error", "", "1.5", "a..b", "256", "retry-me"):
        with pytest.raises(InvalidInputError, match="is not an exit code, a class of exceptions"):
            shop.f.submit(retry_on=[word])
