"""Workers as people see them: each worker's newest session, and how it is."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.errors import Conflict, NotFound
from horae.model.job import DAY
from horae.model.session import Session
from horae.store.contract import Store

Status = Literal["live", "late", "draining", "lost"]
REMEMBERED = DAY  # how long a lost worker is listed
MOST = 1000


class Worker(Struct, frozen=True, kw_only=True):
    """A worker process; its session is what is fenced."""

    worker: str
    session: UUID
    host: str
    pid: int
    version: str
    labels: dict[str, str]
    queues: tuple[str, ...]
    capacity: int
    running: int
    jobs: tuple[str, ...]  # the functions it has loaded
    started_at: Instant
    last_seen: Instant
    status: Status


class Workers:
    """Lists workers and asks them to leave."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings, *, on_request: Callable[[UUID], None]) -> None:
        self._env, self._store, self._on_request = env, store, on_request
        self._late_after = settings.heartbeat * 3 // 2

    async def list(self, namespace: int) -> list[Worker]:
        """Workers that are there or were lost lately, newest first; those that left are not listed."""
        sessions = await self._sessions(namespace)
        return [self._worker(session) for session in _newest(sessions)]

    async def show(self, namespace: int, ref: str) -> Worker:
        """One worker by its name or by its session's id."""
        return self._worker(await self._find(namespace, ref))

    async def drain(self, namespace: int, ref: str) -> Worker:
        """Ask a worker to finish what it runs and leave."""
        session = await self._find(namespace, ref)
        if not await self._store.ask_drain(session.id) and session.state != "draining":
            raise Conflict(f'Worker "{session.worker}" is {session.state}.', "There is nothing left to drain.")
        self._on_request(session.id)
        return self._worker(await self._store.session(session.id) or session)

    async def _sessions(self, namespace: int) -> Sequence[Session]:
        sessions = await self._store.sessions(namespace, self._env.now() - REMEMBERED, MOST)
        return [session for session in sessions if session.state != "closed"]

    async def _find(self, namespace: int, ref: str) -> Session:
        for session in await self._sessions(namespace):
            if ref in (session.worker, str(session.id)):
                return session
        raise NotFound(f'No worker "{ref}".', "List workers with `horae workers list` or GET /api/v1/workers.")

    def _worker(self, session: Session) -> Worker:
        presence = session.presence
        return Worker(
            worker=session.worker, session=session.id, host=presence.host, pid=presence.pid, version=presence.version,
            labels=presence.labels, queues=session.queues, capacity=session.concurrency, running=session.running,
            jobs=tuple(sorted(function.name for function in presence.functions)), started_at=session.created_at,
            last_seen=session.last_seen, status=self._status(session),
        )  # fmt: skip

    def _status(self, session: Session) -> Status:
        if session.state == "live":
            return "late" if self._env.now() - session.last_seen > self._late_after else "live"
        return "draining" if session.state == "draining" else "lost"


def _newest(sessions: Iterable[Session]) -> list[Session]:
    """A worker that came back hides the sessions it lost before."""
    seen: set[str] = set()
    newest = []
    for session in sessions:
        if session.worker not in seen or session.state in ("live", "draining"):
            newest.append(session)
        seen.add(session.worker)
    return newest
