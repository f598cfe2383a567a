"""Outcomes: tell this server's parts, and all servers, what became of executions."""

from collections.abc import Mapping
from uuid import UUID

from horae.engine.base.counters import Counters
from horae.engine.base.event_feed import EventFeed
from horae.engine.base.hints import Hint, Hints
from horae.engine.topics import CancelledCount, Topics
from horae.env import Env
from horae.model.base.event import Event, missed
from horae.model.base.ids import execution_id
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers.dependencies.starts import Consequences

MOST_TOLD, FEW_TOLD = 1000, 20  # events of one kind in a batch


class Outcomes:
    """Publish what was committed: first to subscribers on this server, then as one hint with events to all servers."""

    def __init__(self, env: Env, hints: Hints, events: EventFeed, counters: Counters, topics: Topics) -> None:
        self._env, self._hints, self._events = env, hints, events
        self._counters, self._topics = counters, topics
        topics.started.subscribe("outcomes", self._started)

    def settled(self, effects: Effects, lanes: Mapping[int, int] | None = None) -> None:
        """Publish a batch of reports, rescues or timeouts. Lanes with work default to requeued ones."""
        self._topics.settled(effects)
        self._hints.send(
            Hint(
                lanes=dict(effects.requeued if lanes is None else lanes),
                wake_at=min(effects.wakes, default=None),
                events=self._events_of(effects),
            )
        )

    def cancelled(self, job: UUID, count: int = 1) -> None:
        """Publish that executions of a job were cancelled before they ran."""
        if count:
            self._counters.totals["cancelled"] += count
            self._topics.cancelled(CancelledCount(job, count))

    def asked(self, session: UUID) -> None:
        """Tell the server of a session that its worker was asked to stop something."""
        self._hints.send(Hint(sessions=[session]))

    def tell(self, event: Event) -> None:
        """Publish one event."""
        self._hints.send(Hint(events=[event]))

    def _started(self, started: Consequences) -> None:
        effects = Effects(ended=started.ended, stepped=started.stepped)
        if started.ended:
            self._topics.settled(effects)
        self._hints.send(Hint(lanes=started.lanes, wake_at=started.next, events=self._events_of(effects)))

    def _events_of(self, effects: Effects) -> list[Event]:
        """Return all events of a batch where a listener is on this server, otherwise enough for other servers."""
        now, most = self._env.now(), MOST_TOLD if self._events.wanted else FEW_TOLD
        told = [
            *(
                Event("execution", execution_id(m.parcel, m.lo), m.state, m.namespace, now, m.job, m.hi - m.lo)
                for moved in (effects.ended, effects.moved, effects.started)
                for m in moved[:most]
            ),
            *(
                Event("log", execution_id(n.parcel, n.lo), "running", n.namespace, now, n.job)
                for n in effects.logged[:most]
            ),
            *(
                Event("step", s.execution, s.state, s.namespace, now, s.job, step=s.step)
                for s in effects.stepped[:most]
            ),
        ]
        whole = (effects.ended, effects.moved, effects.started, effects.logged, effects.stepped)
        if any(len(some) > most for some in whole):
            told += [missed(at, now) for at in {one.namespace for some in whole for one in some[most:]}]
        return told
