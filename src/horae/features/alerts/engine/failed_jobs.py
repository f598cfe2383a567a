"""Jobs with recent failures, found in the table `history`, for rules about failures in a row.

Statistics show failures within seconds. But if a server dies, the statistics that it has not written are lost, while
the ends of its executions are in `history`. Therefore, in namespaces with such rules, `history` is checked for all
jobs, too, one page of jobs per round. All pages are read at once when a server has disappeared, when this server has
just got the duty to evaluate rules, and when rules are new.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from uuid import UUID

from msgspec import Struct

from horae.engine.base.presence import SILENT
from horae.env import Env
from horae.features.alerts.store import reads
from horae.features.alerts.store.reads import JobName
from horae.features.alerts.store.rules import Edition
from horae.store.contract import Store
from horae.store.fleet import sessions

PAGE = 250  # jobs of a namespace in a page
PAGES = 40  # pages that one round reads at most, while all jobs are to be read at once

# Rules about failures in a row by namespace: their names and editions.
RulesByNamespace = Mapping[int, Collection[tuple[str, Edition]]]


class _Round(Struct):
    """The progress of the check of a namespace's jobs."""

    rules: frozenset[tuple[str, Edition]]
    after: str = ""  # the last job of the page that was read last
    read_all: bool = True  # read all pages at once, until the last job was read


class FailedJobs:
    """Finds jobs with recent failures in `history`."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._rounds: dict[int, _Round] = {}
        self._servers: frozenset[UUID] = frozenset()

    def restart(self) -> None:
        """Forget all progress, because this server did not hold the duty for some time."""
        self._rounds.clear()
        self._servers = frozenset()

    async def find(
        self, rules_by_namespace: RulesByNamespace, most: int, is_ours: Callable[[], Awaitable[bool]]
    ) -> dict[int, list[JobName]]:
        """Read the next page of jobs of each namespace; return the jobs with a failure among their newest slices.

        `most` is the largest number of failures in a row that a rule has. Reading stops when `is_ours` returns False,
        because this server has lost the duty.
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

    def _round(self, namespace: int, rules: frozenset[tuple[str, Edition]]) -> _Round:
        known = self._rounds.get(namespace)
        if known is None:
            return _Round(rules)
        if rules - known.rules:
            known.after, known.read_all = "", True
        known.rules = rules
        return known

    async def _check_servers(self) -> None:
        """Let all pages be read again if a server has disappeared, because its unwritten statistics are lost."""
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
