"""Jobs with recent failures in history: committed failures count, also if their statistics were lost.

Statistics report failures within seconds, but the unwritten statistics of a server are lost if it dies. Therefore the
history of all jobs is checked as well, in the namespaces with rules that need it, one page of jobs per round. All pages
are read at once when a server has disappeared, when this server has just taken over the watch, and when rules are new.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from uuid import UUID

from msgspec import Struct

from horae.engine.base.presence import SILENT
from horae.env import Env
from horae.features.alerts.store import reads
from horae.features.alerts.store.reads import JobName
from horae.store.contract import Store
from horae.store.fleet import sessions

PAGE = 250  # jobs of a namespace per round
PAGES = 40  # pages per round, while all jobs are to be read at once

# The rules that need failures, with their revisions, by namespace.
RulesByNamespace = Mapping[int, Collection[tuple[str, int]]]


class _Round(Struct):
    """The progress of the check of a namespace's jobs."""

    rules: frozenset[tuple[str, int]]
    after: str = ""
    read_all: bool = True  # read all pages at once, until the last job was read


class FailedJobs:
    """The check of history for failed jobs."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._rounds: dict[int, _Round] = {}
        self._servers: frozenset[UUID] = frozenset()

    def restart(self) -> None:
        """Forget all progress: another server had the duty until now."""
        self._rounds.clear()
        self._servers = frozenset()

    async def find(
        self, rules_by_namespace: RulesByNamespace, most: int, is_ours: Callable[[], Awaitable[bool]]
    ) -> dict[int, list[JobName]]:
        """Return the jobs with a failure among their newest slices, from the next page of each namespace.

        `most` is the longest streak of failures that a rule asks for. Reading stops when this server loses the duty.
        """
        self._rounds = {
            namespace: self._round(namespace, frozenset(rules)) for namespace, rules in rules_by_namespace.items()
        }
        if self._rounds:
            await self._check_servers()
        return {
            namespace: await self._read_pages(namespace, one, most)
            for namespace, one in self._rounds.items()
            if await is_ours()
        }

    def _round(self, namespace: int, rules: frozenset[tuple[str, int]]) -> _Round:
        known = self._rounds.get(namespace)
        if known is None:
            return _Round(rules)
        if rules - known.rules:
            known.after, known.read_all = "", True
        known.rules = rules
        return known

    async def _check_servers(self) -> None:
        """Read everything again if a server has disappeared: its unwritten statistics are lost."""
        since = self._env.now() - SILENT
        present = frozenset(server.id for server in await self._store.read(lambda: sessions.servers(since)))
        if self._servers - present:
            for one in self._rounds.values():
                one.after, one.read_all = "", True
        self._servers = present

    async def _read_pages(self, namespace: int, one: _Round, most: int) -> list[JobName]:
        found: list[JobName] = []
        for _ in range(PAGES if one.read_all else 1):
            after = one.after
            page = await self._store.read(lambda after=after: reads.page_of_jobs(namespace, after, PAGE))  # type: ignore[misc]
            ids = [job.id for job, _ in page]
            failed = await self._store.read(lambda ids=ids: reads.recently_failed(ids, most))  # type: ignore[misc]
            found += [job for job, _ in page if job.id in failed]
            one.after = page[-1][0].name if len(page) == PAGE else ""
            if not one.after:
                one.read_all = False
                break
        return found
