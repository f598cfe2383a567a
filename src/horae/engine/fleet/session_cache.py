"""A cache of sessions with the lanes that each may take from."""

from uuid import UUID

from msgspec import Struct

from horae.engine.base.lookup import Lookup
from horae.engine.definitions.directory import LocalDirectory
from horae.env import Env
from horae.errors import NotFound
from horae.model.admission.claim_plan import QueuePreferences
from horae.model.fleet.session import DETACHED, Session
from horae.store.contract import Store

SILENT = 600.0  # seconds after which a silent session is dropped; live ones send an exchange far sooner
MOST_READ = 256  # sessions read by one statement


class CachedSession(Struct):
    """A session with values that are derived from the directory."""

    session: Session
    used_at: float
    is_new: bool = False  # it registered at another server, and no exchange of it has waited for work here yet
    directory_version: int = -1  # the version of the directory from which the values below were derived
    lanes: frozenset[int] = frozenset()
    preferences: QueuePreferences | None = None  # the order or weights of its queues


class SessionCache:
    """Sessions that registered or exchanged here lately.

    Sessions that registered at another server are read from the store; concurrent reads share a statement.
    """

    def __init__(self, env: Env, store: Store, directory: LocalDirectory) -> None:
        self._env, self._directory = env, directory
        self._known: dict[UUID, CachedSession] = {}
        self._reads: Lookup[UUID, Session] = Lookup(store.some_sessions, most=MOST_READ)
        # A new epoch ends sessions, or gives them the new epoch, which is a part of their tokens.
        store.database.epoch_met.subscribe("session-cache", lambda _: self._known.clear())

    def __contains__(self, session_id: UUID) -> bool:
        return session_id in self._known

    def add(self, session: Session) -> list[UUID]:
        """Add a session that has just registered here; return the sessions that were dropped.

        A worker that is lost or moves to another server does not say so here. Therefore each call drops the sessions
        that have been silent for SILENT seconds.
        """
        now = self._env.clock.monotonic()
        silent = [session_id for session_id, known in self._known.items() if known.used_at < now - SILENT]
        for session_id in silent:
            del self._known[session_id]
        self._known[session.id] = CachedSession(session, now)
        return silent

    async def get(self, namespace: int, session_id: UUID) -> CachedSession:
        """Return a session of this namespace. Raises NotFound."""
        known = self._known.get(session_id)
        if known is None:
            session = await self._reads.get(session_id)
            if session is None or session.namespace != namespace:
                raise _unknown()
            if session.state in DETACHED:  # it will have another epoch soon
                return CachedSession(session, 0.0)
            known = self._known.setdefault(session_id, CachedSession(session, 0.0, is_new=True))
        if known.session.namespace != namespace:
            raise _unknown()
        known.used_at = self._env.clock.monotonic()
        return known

    def lanes(self, known: CachedSession) -> frozenset[int]:
        """Return the lanes from which a session may currently take executions."""
        if known.directory_version != self._directory.version:
            known.lanes, known.directory_version = self._directory.lanes_for(known.session), self._directory.version
            known.preferences = self._directory.preferences.for_session(known.session)
        return known.lanes

    def lanes_of(self, session_id: UUID) -> frozenset[int]:
        """Return the lanes of a session by its id; none if it is not cached."""
        known = self._known.get(session_id)
        return self.lanes(known) if known is not None else frozenset()

    def preferences_of(self, session_id: UUID) -> QueuePreferences | None:
        """Return a session's preferences between its queues, as of the last computation of its lanes."""
        known = self._known.get(session_id)
        return None if known is None else known.preferences

    def forget(self, session_id: UUID) -> None:
        self._known.pop(session_id, None)


def _unknown() -> NotFound:
    return NotFound("There is no such session.", "Register with POST /api/v1/sessions.")
