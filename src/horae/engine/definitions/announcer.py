"""Announcements of changed definitions to the services of this server and, by hints, to the other servers."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.env import Env
from horae.model.base.event import ChangeEvent

Act = Callable[[], object]
Later = Callable[[Act], object]
FireDue = Callable[[], Awaitable[object]]  # makes the scheduler decide due fires before a schedule changes


class Announcer:
    """Announces changes. `later` receives each announcement and calls it, at once or after a commit."""

    def __init__(
        self, env: Env, directory: LocalDirectory, hints: Hints, outcomes: Outcomes, later: Later = lambda act: act()
    ) -> None:
        self._env, self._directory, self._hints, self._outcomes, self._later = env, directory, hints, outcomes, later

    def postponed(self, later: Later) -> "Announcer":
        """Return an announcer that passes its announcements to `later`."""
        return Announcer(self._env, self._directory, self._hints, self._outcomes, later)

    def job_changed(self, namespace: int, job: UUID, state: str) -> None:
        """Announce a job that was created, changed, paused, deleted or restored."""
        self._later(self._directory.alarm.ring)
        self.timers_changed(job)
        event = ChangeEvent("job", job, state, namespace, self._env.now())
        self._later(lambda: self._outcomes.publish_event(event))

    def timers_changed(self, job: UUID) -> None:
        """Announce new timers of a job."""
        self._later(lambda: self._hints.send(Hint(jobs=[job], fire_at=self._env.now())))

    def queued(self, lanes: Mapping[int, int]) -> None:
        """Announce lanes that got executions; `lanes` has the lowest new rank of each."""
        self._later(lambda: self._hints.send(Hint(lanes=dict(lanes))))

    def calendar_changed(self) -> None:
        """Announce a new version of a calendar that triggers and holds use."""
        self._later(lambda: self._hints.send(Hint(fire_at=self._env.now(), holds=True)))


async def already_fired() -> None:
    """Do nothing: the scheduler decided due fires before the transaction began."""
