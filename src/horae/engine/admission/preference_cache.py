"""Queue preferences: the order or the weights by which workers serve their queues.

Workers with equal preferences share one object, and with it the virtual times of their queues.
"""

from collections.abc import Collection, Iterable, Mapping

from horae.model.admission.claim_plan import QueuePreferences
from horae.model.admission.policy import ranks_by_arrival
from horae.model.admission.queue import Queue
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.session import Session

MOST = 1_000  # cached preferences; more exist only if workers keep sending new weights

Key = tuple[int, tuple[tuple[str, float], ...], bool]


class PreferenceCache:
    """The preferences of the sessions on this server."""

    def __init__(self) -> None:
        self._by_choice: dict[Key, QueuePreferences] = {}
        self._queues: Mapping[tuple[int, str], Queue] = {}

    def replace_queues(self, queues: Iterable[Queue]) -> None:
        """Replace the queues. Existing preferences keep the virtual times of their queues."""
        self._queues = {(queue.namespace, queue.name): queue for queue in queues}
        for (namespace, weights, _), preferences in self._by_choice.items():
            preferences.set_queues(self._weights(namespace, weights))

    def for_session(self, session: Session) -> QueuePreferences | None:
        """Return a session's preferences; None when it has one queue, or when rank alone decides.

        Without weights or a strict order, queues that are all ranked by arrival are served like one queue. If one of
        them is ranked differently, ranks cannot be compared, so the queues take turns.
        """
        names, presence = session.queues, session.presence
        if len(names) < 2 or not (presence.strict or presence.weights or self._differ(session)):
            return None
        weights = tuple((name, presence.weights.get(name, 1.0)) for name in names)
        key = (session.namespace, weights, presence.strict)
        preferences = self._by_choice.get(key)
        if preferences is None:
            if len(self._by_choice) >= MOST:
                self._by_choice.clear()
            preferences = self._by_choice[key] = QueuePreferences(
                self._weights(session.namespace, weights), strict=presence.strict
            )
        return preferences

    def _differ(self, session: Session) -> bool:
        own = (self._queues.get((session.namespace, name)) for name in session.queues)
        return any(queue is not None and not ranks_by_arrival(queue.policy) for queue in own)

    def _weights(self, namespace: int, weights: Iterable[tuple[str, float]]) -> dict[int, float]:
        return {
            queue.id: weight for name, weight in weights if (queue := self._queues.get((namespace, name))) is not None
        }

    def note_waiting(self, queues: Collection[int]) -> None:
        """Record which queues have waiting executions."""
        for preferences in self._by_choice.values():
            preferences.virtual_times.set_busy([queue for queue in preferences.weights if queue in queues])

    def __bool__(self) -> bool:
        return bool(self._by_choice)


def charge(preferences: QueuePreferences, running: RunningSlice, expected: float) -> None:
    """Charge a claimed slice to its queue, in the preferences by which it was claimed."""
    preferences.virtual_times.charge(
        running.queue, (running.hi - running.lo) * preferences.price(running.queue, expected)
    )
