"""The part of a step that takes in what probes have shown, and has more of them made."""

from headway.jobs.part import Part
from headway.store.transaction import WriteTx
from headway.worker.tools import Tools


class AnswersPart(Part):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._probes = tools.probes
        self._topics: list[str] = []

    def step(self, tx: WriteTx) -> None:
        """In the transaction, not before: an outcome of this step may have refuted an answer."""
        self._topics = self._probes.take_in()
        tx.waits.wake_topics(self._topics)

    def undo(self) -> None:
        topics, self._topics = self._topics, []
        self._probes.put_back(topics)

    def committed(self) -> None:
        """Probe what waiting jobs ask; a question that no job asks any more is dropped."""
        self._topics = []
        due = self._probes.due()
        if not due or not self._tools.dispatching:
            return
        with self._tools.store.read() as tx:
            waited_for = tx.waits.topics_waited_for([each.topic for each in due])
        self._probes.drop(each for each in due if each.topic not in waited_for)
        self._probes.go()

    def delay(self) -> float | None:
        return self._probes.next_in()
