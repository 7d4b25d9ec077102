"""Plan one pass as the planner would make it, without changing anything: for a dry run, and for the
pass that `scheduler run` makes where no worker lives."""

from collections.abc import Callable, Collection, Mapping, Sequence

from headway.base.home import Home
from headway.core.dispatch import DispatchPlan, plan_dispatch
from headway.core.facts import Answer, Capacity
from headway.core.model import Question
from headway.core.policies import read_topic
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.facts import gather, tasks_known
from headway.jobs.views.present import present_capacity
from headway.store.transaction import ReadTx

Probe = Callable[[Collection[Question]], Mapping[Question, Answer]]
MOST_JOBS = 1000  # of those to be checked, and of those that are ready


def dry_run(context: Context, batch: int) -> DispatchPlan:
    """What one pass would start now, and what it would leave, without changing anything."""
    with context.store.read() as tx:
        return plan_pass(
            tx,
            present_capacity(context, tx),
            context.queues,
            home=context.home,
            probe=lambda questions: answers_to(questions, context.config.conditions),
            batch=batch,
        )


def plan_pass(
    tx: ReadTx,
    capacity: Capacity,
    queues: Sequence[str],
    *,
    home: Home,
    probe: Probe,
    batch: int,
) -> DispatchPlan:
    """The jobs that a pass would start now, after the probes that its gates ask for."""
    topics = (each for each in tx.limits.waited_for() if read_topic(each).queue in queues)
    limited = (job for topic in topics for job in tx.limits.parked_under(topic, MOST_JOBS))
    found = (*tx.waits.woken(MOST_JOBS, queues), *tx.waits.ready(MOST_JOBS, queues), *limited)
    jobs = list({job.id: job for job in found}.values())
    facts = gather(tx, jobs, capacity, queues, tasks_known(tx), home=home)
    answers: dict[Question, Answer] = {}
    while True:
        planned = plan_dispatch(jobs, facts._replace(answers=answers), batch=batch)
        if not planned.unseen:
            return planned
        answers |= probe(planned.unseen)
