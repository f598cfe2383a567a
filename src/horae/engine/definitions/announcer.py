"""Announce changed definitions to the services of this server and, by hints, to the other servers."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.env import Env
from horae.model.base.event import Event

Act = Callable[[], object]
Later = Callable[[Act], object]
FireDue = Callable[[], Awaitable[object]]  # lets the scheduler decide what is due before a schedule changes


class Announcer:
    """Announces changes; `later` gets each announcement and makes it, at once or after a commit."""

    def __init__(
        self, env: Env, directory: LocalDirectory, hints: Hints, outcomes: Outcomes, later: Later = lambda act: act()
    ) -> None:
        self._env, self._directory, self._hints, self._outcomes, self._later = env, directory, hints, outcomes, later

    def postponed(self, later: Later) -> "Announcer":
        """Return an announcer that hands its announcements to `later`."""
        return Announcer(self._env, self._directory, self._hints, self._outcomes, later)

    def job_changed(self, namespace: int, job: UUID, state: str) -> None:
        """Announce a job that was created, changed, paused, deleted or restored."""
        self._later(self._directory.alarm.ring)
        self.timers_changed(job)
        event = Event("job", job, state, namespace, self._env.now())
        self._later(lambda: self._outcomes.tell(event))

    def timers_changed(self, job: UUID) -> None:
        """Announce new timers of a job."""
        self._later(lambda: self._hints.send(Hint(jobs=[job], fire_at=self._env.now())))

    def queued(self, lanes: Mapping[int, int]) -> None:
        """Announce lanes with their least new rank."""
        self._later(lambda: self._hints.send(Hint(lanes=dict(lanes))))

    def calendar_changed(self) -> None:
        """Announce that triggers and holds go by a new version of a calendar."""
        self._later(lambda: self._hints.send(Hint(fire_at=self._env.now(), holds=True)))


async def already_fired() -> None:
    """Stand for the scheduler in a transaction before which it decided what was due."""
