"""Plan one pass as the planner would make it, without changing anything: for a dry run, and for the
pass that `scheduler run` makes where no worker lives."""

from collections.abc import Callable, Collection, Mapping, Sequence

from headway.core.dispatch import DispatchPlan, plan_dispatch
from headway.core.facts import Answer, Door
from headway.core.model import Question
from headway.core.policies import read_topic
from headway.gather import gather, tasks_known
from headway.home import Home
from headway.store.base import ReadTx

Look = Callable[[Collection[Question]], Mapping[Question, Answer]]
MOST_JOBS = 1000  # of those to be looked at, and of those at the door


def plan_pass(
    tx: ReadTx,
    door: Door,
    queues: Sequence[str],
    *,
    home: Home,
    look: Look,
    batch: int,
) -> DispatchPlan:
    """What a pass would start now, after a look at whatever its gates want to know."""
    topics = (each for each in tx.limits_waited_for() if read_topic(each).queue in queues)
    limited = (job for topic in topics for job in tx.filed_under(topic, MOST_JOBS))
    found = (*tx.woken(MOST_JOBS, queues), *tx.ready(MOST_JOBS, queues), *limited)
    jobs = list({job.id: job for job in found}.values())
    facts = gather(tx, jobs, door, queues, tasks_known(tx), home=home)
    answers: dict[Question, Answer] = {}
    while True:
        planned = plan_dispatch(jobs, facts._replace(answers=answers), batch=batch)
        if not planned.unseen:
            return planned
        answers |= look(planned.unseen)
