"""The backstop: workers enforce timeouts, but if a worker fails to, the server asks it to end the attempt."""

from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant, Micros
from horae.model.base.ids import execution_id
from horae.model.definitions.timeouts import REQUESTS, AttemptTimeout, AttemptTimeouts, AttemptTimes, overdue
from horae.store.contract import Store
from horae.store.fleet import backstop

INTERVAL = 5.0  # seconds between two checks
SLACK: Micros = 30 * SECOND  # added to timeout and grace, because workers may report late
PAGE = 500
log = structlog.get_logger("horae.engine")


class Backstop:
    """Asks workers to end every item that has run longer than its job allows."""

    name = "backstop"

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self.requested = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check all items that have run for a while."""
        after: tuple[UUID, int] | None = backstop.FIRST
        while after is not None:
            after = await self._page(after)
        return INTERVAL

    async def _page(self, after: tuple[UUID, int]) -> tuple[UUID, int] | None:
        before = self._env.now() - SLACK
        rows = await self._store.read(lambda: backstop.long_running(after, before, PAGE))
        known = await self._directory.definitions.get(sorted({(row.job, row.version) for row in rows}))
        for row in rows:
            late = _late(row, known[row.job, row.version].allowance, before)
            if late is not None:
                await self._ask(row, late)
        return (rows[-1].parcel, rows[-1].lo) if len(rows) == PAGE else None

    async def _ask(self, row: backstop.LongRunning, late: AttemptTimeout) -> None:
        now = self._env.now()
        if await self._store.write(lambda: backstop.ask_to_end(row, REQUESTS[late], now)):
            self.requested += row.hi - row.lo
            self._hints.send(Hint(sessions=[row.session]))
            log.warning(
                "running past its timeout", timeout=late, execution=str(execution_id(row.parcel, row.lo)),
                executions=row.hi - row.lo, job=str(row.job), session=str(row.session),
            )  # fmt: skip


def _late(row: backstop.LongRunning, allowed: AttemptTimeouts, before: Instant) -> AttemptTimeout | None:
    """Return the timeout that passed before an instant, or None.

    For a slice of several items, the heartbeat timeout is not checked, because its progress may be that of the first
    item only.
    """
    if not allowed.is_bounded:
        return None
    heard_at = row.progress_at if row.hi - row.lo == 1 else before
    held = AttemptTimes(due_at=row.due_at, granted_at=row.granted_at, started_at=row.started_at, heard_at=heard_at)
    late = overdue(held, allowed, before)
    return None if late == "start" and row.start_timed_out else late
