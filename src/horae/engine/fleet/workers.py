"""Workers as users see them: each worker's newest session and its status."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import as_id
from horae.engine.executions.outcomes import Outcomes
from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.errors import Conflict, NotFound
from horae.model.admission.placement.labels import SLOTS
from horae.model.admission.placement.placement import PLAIN, Cost
from horae.model.base.duration import DAY
from horae.model.fleet.session import PRESENT, Session, labels_of
from horae.store.contract import Store
from horae.store.fleet.sessions import SessionSummary, held_by_lane, session_of_worker, session_summaries

Status = Literal["live", "late", "draining", "lost"]
REMEMBERED = DAY  # a lost worker is listed for this time
MOST = 1000  # sessions read for a list
MOST_COUNTED = 100_000  # sessions read to count all workers
MOST_CHARACTERS = 4 * 1024 * 1024  # characters of the workers' own descriptions in a list


class WorkerProcess(Struct, frozen=True, kw_only=True):
    """A worker process, with its newest session."""

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
    used: dict[str, int]  # slots and resources that its executions take
    jobs: tuple[str, ...]  # its loaded functions
    started_at: Instant
    last_seen: Instant
    status: Status


class SlotCounts(Struct):
    """The number of slots of workers, and how many of them are busy."""

    all: int = 0
    busy: int = 0


class WorkerCountsByNamespace(Struct, frozen=True):
    """The numbers of workers by namespace and status, and the slots of workers that are not lost."""

    by_status: Mapping[tuple[int, Status], int]
    slots: Mapping[int, SlotCounts]


class WorkerCounts(Struct, frozen=True):
    """The numbers of workers of one namespace by status, and the slots of workers that are not lost."""

    by_status: Mapping[Status, int]
    slots: SlotCounts


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
        """Make an object that reads workers; `costs` returns the costs of lanes whose executions take several slots."""
        self._env, self._store, self._outcomes, self._costs = env, store, outcomes, costs
        self._late_after = settings.heartbeat * 3 // 2

    async def list(self, namespace: int) -> Sequence[WorkerProcess]:
        """Return live and recently lost workers, newest first. Workers that left are not listed.

        A list ends where it would exceed `MOST_CHARACTERS`.
        """
        briefs = _newest(await self._sessions(namespace, MOST))
        total, listed = 0, dict[UUID, SessionSummary]()
        for brief in briefs:
            total += brief.size
            if listed and total > MOST_CHARACTERS:
                break
            listed[brief.id] = brief
        sessions = await self._store.some_sessions(list(listed))
        return await self._shown(
            [structs.replace(sessions[key], running=brief.running) for key, brief in listed.items() if key in sessions]
        )

    async def fleet(self, namespace: int) -> WorkerCounts:
        """Count the workers of a namespace by status, and their slots."""
        briefs = _newest(await self._sessions(namespace, MOST_COUNTED))
        present = [brief for brief in briefs if self._status(brief) != "lost"]
        held = await self._store.read(lambda: held_by_lane(brief.id for brief in present))
        costs = self._costs()
        busy = sum(used_resources(brief.concurrency, held[brief.id], costs)[SLOTS] for brief in present)
        slots = SlotCounts(all=sum(brief.concurrency for brief in present), busy=busy)
        return WorkerCounts(Counter(map(self._status, briefs)), slots)

    async def counts(self) -> WorkerCountsByNamespace:
        """Count the workers of all namespaces by status, and their slots."""
        sessions = dict[int, list[SessionSummary]]()
        for session in await self._sessions(0, MOST_COUNTED):
            sessions.setdefault(session.namespace, []).append(session)
        by_status: Counter[tuple[int, Status]] = Counter()
        slots: dict[int, SlotCounts] = {}
        for namespace, briefs in sessions.items():
            for brief in _newest(briefs):
                status = self._status(brief)
                by_status[namespace, status] += 1
                if status != "lost":
                    own = slots.setdefault(namespace, SlotCounts())
                    own.all += brief.concurrency
                    own.busy += min(brief.concurrency, brief.running)
        return WorkerCountsByNamespace(by_status, slots)

    async def show(self, namespace: int, ref: str) -> WorkerProcess:
        """Return one worker by its name or by its session's id."""
        return (await self._shown([await self._find(namespace, ref)]))[0]

    async def drain(self, namespace: int, ref: str) -> WorkerProcess:
        """Ask a worker to finish what it runs and leave."""
        session = await self._find(namespace, ref)
        if not await self._store.ask_drain(session.id) and session.state != "draining":
            raise Conflict(f'Worker "{session.worker}" is {session.state}.', "There is nothing left to drain.")
        self._outcomes.publish_request(session.id)
        return (await self._shown([await self._store.session(session.id) or session]))[0]

    async def _sessions(self, namespace: int, most: int) -> Sequence[SessionSummary]:
        after = self._env.now() - REMEMBERED
        return await self._store.read(lambda: session_summaries(namespace, after, most))

    async def _find(self, namespace: int, ref: str) -> Session:
        after = self._env.now() - REMEMBERED
        found = await self._store.read(lambda: session_of_worker(namespace, ref, as_id(ref), after))
        if found is not None:
            return found
        raise NotFound(f'No worker "{ref}".', "List workers with `horae workers list` or GET /api/v1/workers.")

    async def _shown(self, sessions: Sequence[Session]) -> Sequence[WorkerProcess]:
        held = await self._store.read(lambda: held_by_lane(session.id for session in sessions))
        return [self._worker(session, held[session.id]) for session in sessions]

    def _worker(self, session: Session, held: Mapping[int, int]) -> WorkerProcess:
        presence = session.presence
        return WorkerProcess(
            worker=session.worker, session=session.id, host=presence.host, pid=presence.pid, version=presence.version,
            labels=labels_of(presence), queues=session.queues, capacity=session.concurrency, running=session.running,
            resources=presence.resources, used=used_resources(session.concurrency, held, self._costs()),
            jobs=tuple(sorted(function.name for function in presence.functions)), started_at=session.created_at,
            last_seen=session.last_seen, status=self._status(session),
        )  # fmt: skip

    def _status(self, session: Session | SessionSummary) -> Status:
        if session.state == "live":
            return "late" if self._env.now() - session.last_seen > self._late_after else "live"
        if session.state == "detached":
            return "late"
        return "draining" if session.state in PRESENT else "lost"


def used_resources(slots: int, held: Mapping[int, int], costs: Mapping[int, Cost]) -> dict[str, int]:
    """Return the slots and resources that a worker's executions take, given their number per lane.

    Prefetched executions take no slot yet, so the slots are at most those of the worker.
    """
    taken = {SLOTS: 0}
    for lane, count in held.items():
        cost = costs.get(lane, PLAIN)
        taken[SLOTS] += count * cost.slots
        for name, amount in cost.resources:
            taken[name] = taken.get(name, 0) + count * amount
    return {**taken, SLOTS: min(slots, taken[SLOTS])}


def _newest(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    """Return the newest session of each worker name, and all its live or draining ones.

    So the lost sessions of a worker that came back are hidden.
    """
    seen: set[str] = set()
    newest = []
    for session in sessions:
        if session.worker not in seen or session.state in PRESENT:
            newest.append(session)
        seen.add(session.worker)
    return newest
