"""Executions: read, listed, followed and cancelled."""

from collections.abc import Callable
from uuid import UUID

from horae.env import Env, Micros
from horae.model.job import DAY
from horae.model.view import AttemptView, CancelView, CountsView, ExecutionView, LogPage, Page
from horae.store.contract import Store


class Executions:
    """What can be asked about executions, and their cancellation. `since` and `until` are RFC 3339 or instants."""

    def __init__(
        self,
        env: Env,
        store: Store,
        *,
        retention: Micros = 30 * DAY,
        on_asked: Callable[[UUID], object] = lambda session: None,
        on_ended: Callable[[UUID], object] = lambda execution: None,
    ) -> None:
        """`on_asked` is called with the session that was asked to stop something, `on_ended` with what was cancelled."""
        raise NotImplementedError

    async def get(self, namespace: int, execution: str | UUID) -> ExecutionView:
        """One execution. Raises NotFound, or Gone when its id is older than what is kept."""
        raise NotImplementedError

    async def list(
        self,
        namespace: int,
        *,
        status: str | None = None,
        job: str | None = None,
        queue: str | None = None,
        parent: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ExecutionView]:
        """Executions, newest first; `status` is a state or `pending` (waiting or queued), `job` a name or id.

        Large params and results are left out. A page may be short, even empty, while `nextCursor` says there is more.
        """
        raise NotImplementedError

    async def logs(
        self,
        namespace: int,
        execution: str | UUID,
        *,
        attempt: int | None = None,
        cursor: str | None = None,
        tail: int | None = None,
        limit: int = 1000,
    ) -> LogPage:
        """Log lines from the beginning, after a cursor, or the last `tail`."""
        raise NotImplementedError

    async def attempts(self, namespace: int, execution: str | UUID) -> list[AttemptView]:
        """All tries in order, the running or last one included; what was handed back unstarted left no trace."""
        raise NotImplementedError

    async def counts(self, namespace: int, job: str | None = None) -> CountsView:
        """How many executions are in each state."""
        raise NotImplementedError

    async def cancel(self, namespace: int, execution: str | UUID, reason: str = "") -> CancelView:
        """Cancel what waits or is queued; ask the worker of what runs. Raises Conflict when it has ended otherwise."""
        raise NotImplementedError
