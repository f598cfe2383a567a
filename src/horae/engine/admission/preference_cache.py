"""Queue preferences: how workers choose between their queues. Sessions with equal preferences share virtual times."""

from collections.abc import Collection, Iterable, Mapping

from horae.model.admission.claim_plan import QueuePreferences
from horae.model.admission.policy import ranks_by_arrival
from horae.model.admission.queue import Queue
from horae.model.executions.slice import Running
from horae.model.fleet.session import Session

MOST = 1_000  # different ones; more come only from workers with ever new weights

Key = tuple[int, tuple[tuple[str, float], ...], bool]


class PreferenceCache:
    """The preferences of sessions that this server has seen."""

    def __init__(self) -> None:
        self._by_choice: dict[Key, QueuePreferences] = {}
        self._queues: Mapping[tuple[int, str], Queue] = {}

    def replace_queues(self, queues: Iterable[Queue]) -> None:
        """Replace the queues. Existing preferences keep the virtual times of their queues."""
        self._queues = {(queue.namespace, queue.name): queue for queue in queues}
        for (namespace, weights, _), taste in self._by_choice.items():
            taste.choose(self._weights(namespace, weights))

    def for_session(self, session: Session) -> QueuePreferences | None:
        """Return a session's preferences; None when it has no choice, or rank alone decides.

        Without weights, queues ranked by arrival count as one line; where ranks cannot be compared, queues take turns.
        """
        names, presence = session.queues, session.presence
        if len(names) < 2 or not (presence.strict or presence.weights or self._differ(session)):
            return None
        weights = tuple((name, presence.weights.get(name, 1.0)) for name in names)
        key = (session.namespace, weights, presence.strict)
        taste = self._by_choice.get(key)
        if taste is None:
            if len(self._by_choice) >= MOST:
                self._by_choice.clear()
            taste = self._by_choice[key] = QueuePreferences(
                self._weights(session.namespace, weights), strict=presence.strict
            )
        return taste

    def _differ(self, session: Session) -> bool:
        own = (self._queues.get((session.namespace, name)) for name in session.queues)
        return any(queue is not None and not ranks_by_arrival(queue.policy) for queue in own)

    def _weights(self, namespace: int, weights: Iterable[tuple[str, float]]) -> dict[int, float]:
        return {
            queue.id: weight for name, weight in weights if (queue := self._queues.get((namespace, name))) is not None
        }

    def note_waiting(self, queues: Collection[int]) -> None:
        """Note which queues have waiting work."""
        for taste in self._by_choice.values():
            taste.shares.present([queue for queue in taste.weights if queue in queues])

    def __bool__(self) -> bool:
        return bool(self._by_choice)


def charge(taste: QueuePreferences, running: Running, expected: float) -> None:
    """Charge a preference for a slice taken from a queue."""
    taste.shares.charge(running.queue, (running.hi - running.lo) * taste.price(running.queue, expected))
