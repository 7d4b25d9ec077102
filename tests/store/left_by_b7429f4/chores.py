"""The modules of the project: a task, functions of the jobs file, its poll and a condition."""

import os
import threading

from headway import App, JobContext, condition, job, poll

app = App()


def ran(word: str) -> None:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ran"), "a") as file:
        file.write(f"{word}\n")


@app.task
def note(word: str) -> str:
    ran(word)
    return word.upper()


@app.task
def hang(word: str) -> None:
    ran(word)
    threading.Event().wait(600)


@poll
def fetch() -> dict[str, int]:
    return {"open_prs": 2}


@condition("gate_is_open")
def gate_is_open() -> bool:
    return os.path.exists("gate")


@job("sweep")
def sweep(ctx: JobContext) -> None:
    ctx.state["swept"] = ctx.state.get("swept", 0) + 1
    ran("sweep")


def review(ctx: JobContext) -> None:
    ran(f"review {(ctx.poll_data or {}).get('open_prs')}")
