"""Jobs of which something failed, as history tells: what is committed counts, also where its statistics were lost.

Statistics tell of failures within seconds, but those of a server that dies go with it. So a round over all jobs of the
namespaces that ask goes on beside them, a page at each look; it is whole at once when a server is gone, when another
one begins to look, and when rules are new.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from uuid import UUID

from msgspec import Struct

from horae.engine.base.presence import SILENT
from horae.env import Env
from horae.features.alerts.store import facts
from horae.features.alerts.store.facts import Named
from horae.store.contract import Store
from horae.store.fleet import sessions

PAGE = 250  # jobs of a namespace at each look
PAGES = 40  # at once, while there is a reason to look at all of them

Asking = Mapping[int, Collection[tuple[str, int]]]  # the rules of each namespace that want to know, with revisions


class _Round(Struct):
    """How far a namespace's jobs were looked at."""

    asking: frozenset[tuple[str, int]]
    after: str = ""
    hurry: bool = True  # until the round that goes on has come to its end


class Suspects:
    """Goes round."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._rounds: dict[int, _Round] = {}
        self._servers: frozenset[UUID] = frozenset()

    def restart(self) -> None:
        """Somebody else looked until now."""
        self._rounds.clear()
        self._servers = frozenset()

    async def look(self, asking: Asking, most: int, is_ours: Callable[[], Awaitable[bool]]) -> dict[int, list[Named]]:
        """Jobs of the next page of each namespace of whose newest slices one has failed; `most` of them count.

        Nothing is looked at any more once the duty is another one's.
        """
        self._rounds = {namespace: self._round(namespace, frozenset(rules)) for namespace, rules in asking.items()}
        if self._rounds:
            await self._look_for_servers()
        return {
            namespace: await self._go_on(namespace, one, most)
            for namespace, one in self._rounds.items()
            if await is_ours()
        }

    def _round(self, namespace: int, rules: frozenset[tuple[str, int]]) -> _Round:
        known = self._rounds.get(namespace)
        if known is None:
            return _Round(rules)
        if rules - known.asking:
            known.after, known.hurry = "", True
        known.asking = rules
        return known

    async def _look_for_servers(self) -> None:
        """What a server that is gone had counted and not written nobody else knows."""
        since = self._env.now() - SILENT
        present = frozenset(server.id for server in await self._store.read(lambda: sessions.servers(since)))
        if self._servers - present:
            for one in self._rounds.values():
                one.after, one.hurry = "", True
        self._servers = present

    async def _go_on(self, namespace: int, one: _Round, most: int) -> list[Named]:
        found: list[Named] = []
        for _ in range(PAGES if one.hurry else 1):
            after = one.after
            page = await self._store.read(lambda after=after: facts.page_of_jobs(namespace, after, PAGE))  # type: ignore[misc]
            ids = [job.id for job, _ in page]
            failed = await self._store.read(lambda ids=ids: facts.failed_of_newest(ids, most))  # type: ignore[misc]
            found += [job for job, _ in page if job.id in failed]
            one.after = page[-1][0].name if len(page) == PAGE else ""
            if not one.after:
                one.hurry = False
                break
        return found
