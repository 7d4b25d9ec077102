"""A module that submits when it is imported: who imports it to run its tasks submits nothing."""

from collections.abc import Callable

from shop import Shop

from headway.jobs.views.why import why

AT_IMPORT = """
@app.task
def add(x: int) -> int: return x + 1
if __spec__: add.submit(1)
"""
IN_A_TASK = """
@app.task
def add(x: int) -> int: return x + 1
@app.task
def more(x: int) -> int:
    import importlib
    importlib.import_module("json.tool")
    return add.submit(x).result() + add.options(locks=["a"]).submit(x).result()
"""


def test_the_import_fails_and_says_what_to_do(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop(AT_IMPORT)
    handle = shop.add.submit(1)
    told = 'put that below `if __name__ == "__main__":`'
    trouble = shop.bench.until(
        lambda: [
            each["detail"]
            for each in why(shop.bench.client.context, handle.job_id)["objections"]
            if each["detail"].startswith("importing shop_tasks failed")
        ],
        "the trouble to be known",
    )
    assert "shop_tasks.add is submitted when its module is imported" in trouble[0]
    assert trouble[0].endswith(told)
    with shop.bench.store.read() as tx:
        assert sum(tx.jobs.count_active().values()) == 1, "its own"
    handle.cancel()


def test_a_task_may_submit_others(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop(IN_A_TASK)
    handle = shop.more.submit(3)
    shop.ended(handle)
    assert handle.result() == 8
