"""Outcomes: publish changes of executions to the parts of this server and to all servers."""

from collections.abc import Mapping
from uuid import UUID

from horae.engine.base.counters import Counters
from horae.engine.base.event_feed import EventFeed
from horae.engine.base.hints import Hint, Hints
from horae.engine.topics import CancelledCount, Topics
from horae.env import Env
from horae.model.base.event import ChangeEvent, left_out_event
from horae.model.base.ids import execution_id
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers.dependencies.starts import Consequences

MOST_EVENTS, FEW_EVENTS = 1000, 20  # events of one kind in a batch, with and without listeners on this server


class Outcomes:
    """Publishes committed changes: first to subscribers on this server, then as one hint with events to all servers."""

    def __init__(self, env: Env, hints: Hints, events: EventFeed, counters: Counters, topics: Topics) -> None:
        self._env, self._hints, self._events = env, hints, events
        self._counters, self._topics = counters, topics
        topics.started.subscribe("outcomes", self._started)

    def publish_settled(self, effects: Effects, lanes: Mapping[int, int] | None = None) -> None:
        """Publish a batch of reports, rescues or timeouts. `lanes` defaults to the lanes of requeued executions."""
        self._topics.settled(effects)
        self._hints.send(
            Hint(
                lanes=dict(effects.requeued if lanes is None else lanes),
                wake_at=min(effects.wakes, default=None),
                events=self._events_of(effects),
            )
        )

    def publish_cancelled(self, job: UUID, count: int = 1) -> None:
        """Publish that executions of a job were cancelled before they ran."""
        if count:
            self._counters.totals["cancelled"] += count
            self._topics.cancelled(CancelledCount(job, count))

    def publish_request(self, session: UUID) -> None:
        """Wake the server of a session after a request to stop one of its executions."""
        self._hints.send(Hint(sessions=[session]))

    def publish_event(self, event: ChangeEvent) -> None:
        """Publish one event."""
        self._hints.send(Hint(events=[event]))

    def _started(self, started: Consequences) -> None:
        effects = Effects(ended=started.ended_workflows, stepped=started.stepped)
        if started.ended_workflows:
            self._topics.settled(effects)
        self._hints.send(Hint(lanes=started.lanes, wake_at=started.next, events=self._events_of(effects)))

    def _events_of(self, effects: Effects) -> list[ChangeEvent]:
        """Return the events of a batch: many if this server has listeners, otherwise a few for the other servers."""
        now, most = self._env.now(), MOST_EVENTS if self._events.wanted else FEW_EVENTS
        events = [
            *(
                ChangeEvent(
                    "execution",
                    execution_id(moved_slice.parcel, moved_slice.lo),
                    moved_slice.state,
                    moved_slice.namespace,
                    now,
                    moved_slice.job,
                    moved_slice.hi - moved_slice.lo,
                )
                for group in (effects.ended, effects.moved, effects.started)
                for moved_slice in group[:most]
            ),
            *(
                ChangeEvent("log", execution_id(line.parcel, line.lo), "running", line.namespace, now, line.job)
                for line in effects.logged[:most]
            ),
            *(
                ChangeEvent("step", step.execution, step.state, step.namespace, now, step.job, step=step.step)
                for step in effects.stepped[:most]
            ),
        ]
        groups = (effects.ended, effects.moved, effects.started, effects.logged, effects.stepped)
        if any(len(group) > most for group in groups):
            events += [
                left_out_event(at, now) for at in {change.namespace for group in groups for change in group[most:]}
            ]
        return events
