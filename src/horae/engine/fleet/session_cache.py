"""The sessions that a server knows, and what each may take from."""

from uuid import UUID

from msgspec import Struct

from horae.engine.base.lookup import Lookup
from horae.engine.definitions.directory import LocalDirectory
from horae.env import Env
from horae.errors import NotFound
from horae.model.admission.claim_plan import QueuePreferences
from horae.model.fleet.session import Session
from horae.store.contract import Store

SILENT = 600.0  # seconds after which a session is read from the store again; parked ones are heard of far sooner
MOST_READ = 256  # sessions read by one statement


class CachedSession(Struct):
    """A session as this server knows it; what it may take from follows the directory."""

    session: Session
    used_at: float
    is_new: bool = False  # it came from elsewhere and has not waited here yet
    version: int = -1
    lanes: frozenset[int] = frozenset()
    taste: QueuePreferences | None = None  # how it chooses between its queues


class SessionCache:
    """Sessions that registered or exchanged here lately; those that come from another server are read together."""

    def __init__(self, env: Env, store: Store, directory: LocalDirectory) -> None:
        self._env, self._directory = env, directory
        self._known: dict[UUID, CachedSession] = {}
        self._reads: Lookup[UUID, Session] = Lookup(store.some_sessions, most=MOST_READ)

    def __contains__(self, id: UUID) -> bool:
        return id in self._known

    def add(self, session: Session) -> list[UUID]:
        """A session that has just registered here; returns those that are forgotten.

        Workers that were lost, or went to another server, say nothing: newcomers take their place in memory.
        """
        now = self._env.clock.monotonic()
        silent = [id for id, known in self._known.items() if known.used_at < now - SILENT]
        for id in silent:
            del self._known[id]
        self._known[session.id] = CachedSession(session, now)
        return silent

    async def get(self, namespace: int, id: UUID) -> CachedSession:
        """A session of this namespace. Raises NotFound."""
        known = self._known.get(id)
        if known is None:
            session = await self._reads.get(id)
            if session is None or session.namespace != namespace:
                raise _unknown()
            known = self._known.setdefault(id, CachedSession(session, 0.0, is_new=True))
        if known.session.namespace != namespace:
            raise _unknown()
        known.used_at = self._env.clock.monotonic()
        return known

    def lanes(self, known: CachedSession) -> frozenset[int]:
        """What a session may take from now."""
        if known.version != self._directory.version:
            known.lanes, known.version = self._directory.may_take(known.session), self._directory.version
            known.taste = self._directory.tastes.for_session(known.session)
        return known.lanes

    def lanes_of(self, id: UUID) -> frozenset[int]:
        """The same by id; one that is not known may take nothing."""
        known = self._known.get(id)
        return self.lanes(known) if known is not None else frozenset()

    def taste_of(self, id: UUID) -> QueuePreferences | None:
        """How a session chooses between its queues, as it was when its lanes were looked up."""
        known = self._known.get(id)
        return None if known is None else known.taste

    def forget(self, id: UUID) -> None:
        self._known.pop(id, None)


def _unknown() -> NotFound:
    return NotFound("There is no such session here.", "Register with POST /api/v1/sessions.")
