"""Workers as people see them: each worker's newest session, and how it is."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.executions.outcomes import Outcomes
from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.errors import Conflict, NotFound
from horae.model.admission.placement.placement import PLAIN, Cost
from horae.model.admission.reading.placement import SLOTS
from horae.model.base.duration import DAY
from horae.model.fleet.session import Session, labels_of
from horae.store.contract import Store
from horae.store.fleet.sessions import SessionSummary, held_by_lane, session_summaries

Status = Literal["live", "late", "draining", "lost"]
REMEMBERED = DAY  # how long a lost worker is listed
MOST = 1000
MOST_COUNTED = 100_000
MOST_TOLD = 4 * 1024 * 1024  # characters of what workers say of themselves, in a list


class WorkerProcess(Struct, frozen=True, kw_only=True):
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
    resources: dict[str, int]
    used: dict[str, int]  # slots and resources that what it holds takes
    jobs: tuple[str, ...]  # the functions it has loaded
    started_at: Instant
    last_seen: Instant
    status: Status


class Slots(Struct):
    """How many executions workers run at once at most, and how many they do."""

    all: int = 0
    busy: int = 0


class WorkerCountsByNamespace(Struct, frozen=True):
    """How many workers of each namespace are how, and the slots of those that are there."""

    by_status: Mapping[tuple[int, Status], int]
    slots: Mapping[int, Slots]


class WorkerCounts(Struct, frozen=True):
    """How many workers of one namespace are how, and the slots of those that are there."""

    by_status: Mapping[Status, int]
    slots: Slots


class Workers:
    """Lists workers and asks them to leave."""

    def __init__(
        self,
        env: Env,
        store: Store,
        settings: EngineSettings,
        outcomes: Outcomes,
        *,
        costs: Callable[[], Mapping[int, Cost]] = dict,
    ) -> None:
        """`costs` are those of executions in lanes where they take more than a slot."""
        self._env, self._store, self._outcomes, self._costs = env, store, outcomes, costs
        self._late_after = settings.heartbeat * 3 // 2

    async def list(self, namespace: int) -> Sequence[WorkerProcess]:
        """Workers that are there or were lost lately, newest first; those that left are not listed.

        A list ends where it would have more than `MOST_TOLD` characters.
        """
        briefs = _newest(await self._sessions(namespace))
        total, told = 0, dict[UUID, SessionSummary]()
        for brief in briefs:
            total += brief.size
            if told and total > MOST_TOLD:
                break
            told[brief.id] = brief
        sessions = await self._store.some_sessions(list(told))
        return await self._shown(
            [structs.replace(sessions[id], running=brief.running) for id, brief in told.items() if id in sessions]
        )

    async def fleet(self, namespace: int) -> WorkerCounts:
        """How many workers of a namespace are how, and the slots of those that are there."""
        briefs = _newest(await self._sessions(namespace))
        there = [brief for brief in briefs if self._status(brief) != "lost"]
        held = await self._store.read(lambda: held_by_lane(brief.id for brief in there))
        costs = self._costs()
        busy = sum(used(brief.concurrency, held[brief.id], costs)[SLOTS] for brief in there)
        slots = Slots(all=sum(brief.concurrency for brief in there), busy=busy)
        return WorkerCounts(Counter(map(self._status, briefs)), slots)

    async def counts(self) -> WorkerCountsByNamespace:
        """How many workers of each namespace are how."""
        after, sessions = self._env.now() - REMEMBERED, dict[int, list[SessionSummary]]()
        for session in await self._store.read(lambda: session_summaries(0, after, MOST_COUNTED)):
            if session.state != "closed":
                sessions.setdefault(session.namespace, []).append(session)
        by_status: Counter[tuple[int, Status]] = Counter()
        slots: dict[int, Slots] = {}
        for namespace, some in sessions.items():
            for one in _newest(some):
                status = self._status(one)
                by_status[namespace, status] += 1
                if status != "lost":
                    own = slots.setdefault(namespace, Slots())
                    own.all += one.concurrency
                    own.busy += min(one.concurrency, one.running)
        return WorkerCountsByNamespace(by_status, slots)

    async def show(self, namespace: int, ref: str) -> WorkerProcess:
        """One worker by its name or by its session's id."""
        return (await self._shown([await self._find(namespace, ref)]))[0]

    async def drain(self, namespace: int, ref: str) -> WorkerProcess:
        """Ask a worker to finish what it runs and leave."""
        session = await self._find(namespace, ref)
        if not await self._store.ask_drain(session.id) and session.state != "draining":
            raise Conflict(f'Worker "{session.worker}" is {session.state}.', "There is nothing left to drain.")
        self._outcomes.asked(session.id)
        return (await self._shown([await self._store.session(session.id) or session]))[0]

    async def _sessions(self, namespace: int) -> Sequence[SessionSummary]:
        after = self._env.now() - REMEMBERED
        sessions = await self._store.read(lambda: session_summaries(namespace, after, MOST))
        return [session for session in sessions if session.state != "closed"]

    async def _find(self, namespace: int, ref: str) -> Session:
        for brief in await self._sessions(namespace):
            if ref in (brief.worker, str(brief.id)) and (session := await self._store.session(brief.id)):
                return session
        raise NotFound(f'No worker "{ref}".', "List workers with `horae workers list` or GET /api/v1/workers.")

    async def _shown(self, sessions: Sequence[Session]) -> Sequence[WorkerProcess]:
        held = await self._store.read(lambda: held_by_lane(session.id for session in sessions))
        return [self._worker(session, held[session.id]) for session in sessions]

    def _worker(self, session: Session, held: Mapping[int, int]) -> WorkerProcess:
        presence = session.presence
        return WorkerProcess(
            worker=session.worker, session=session.id, host=presence.host, pid=presence.pid, version=presence.version,
            labels=labels_of(presence), queues=session.queues, capacity=session.concurrency, running=session.running,
            resources=presence.resources, used=used(session.concurrency, held, self._costs()),
            jobs=tuple(sorted(function.name for function in presence.functions)), started_at=session.created_at,
            last_seen=session.last_seen, status=self._status(session),
        )  # fmt: skip

    def _status(self, session: Session | SessionSummary) -> Status:
        if session.state == "live":
            return "late" if self._env.now() - session.last_seen > self._late_after else "live"
        return "draining" if session.state == "draining" else "lost"


def used(slots: int, held: Mapping[int, int], costs: Mapping[int, Cost]) -> dict[str, int]:
    """What of a worker is taken by so many executions of each lane; what is held ready takes no slot yet."""
    taken = {SLOTS: 0}
    for lane, count in held.items():
        cost = costs.get(lane, PLAIN)
        taken[SLOTS] += count * cost.slots
        for name, amount in cost.resources:
            taken[name] = taken.get(name, 0) + count * amount
    return {**taken, SLOTS: min(slots, taken[SLOTS])}


def _newest(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    """A worker that came back hides the sessions it lost before."""
    seen: set[str] = set()
    newest = []
    for session in sessions:
        if session.worker not in seen or session.state in ("live", "draining"):
            newest.append(session)
        seen.add(session.worker)
    return newest
