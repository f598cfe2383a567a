"""`ctx.sync`: the methods of `ctx` for sync functions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from horae.model.executions.job_exceptions import Span
from horae.worker.code.artifacts import Content, upload_request
from horae.worker.code.execution_requests import ArtifactReceipt, ChildReceipt, ExecutionRequest
from horae.worker.code.transactions import SyncTransaction
from horae.worker.processes.scripts import PendingOperation, Script, run_sync

if TYPE_CHECKING:
    from horae.worker.code.context import Context


class SyncContext:
    """The methods of `ctx` for sync functions: each waits for its result and returns it."""

    def __init__(self, context: "Context") -> None:
        self._context = context

    def submit(self, job: Any, params: Mapping[str, Any] | None = None, **how: Any) -> ChildReceipt:
        done: list[ChildReceipt] = self._wait(self._context._submissions(job, [params or {}], how))
        return done[0]

    def submit_many(self, job: Any, items: Sequence[Mapping[str, Any]], **how: Any) -> list[ChildReceipt]:
        done: list[ChildReceipt] = self._wait(self._context._many(job, items, how))
        return done

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._run(self._context.step(name, function, *args, **kwargs))

    def sleep(self, span: Span | None = None, *, until: datetime | str | None = None) -> None:
        self._run(self._context.sleep(span, until=until))

    def wait_for(self, signal: str, *, timeout: Span | None = None, filter: str | None = None) -> Any:  # noqa: A002
        return self._run(self._context.wait_for(signal, timeout=timeout, filter=filter))

    def checkpoint(self, state: Any) -> None:
        self._run(self._context.checkpoint(state))

    def restored(self, default: Any = None) -> Any:
        return self._run(self._context.restored(default))

    def gather(self, *parts: Any, limit: int | None = None) -> Any:
        """Run operations such as `ctx.step(...)`, or functions without parameters, concurrently in threads."""
        return self._run(self._context.gather(*parts, limit=limit))

    def transaction(self, connection: Any) -> SyncTransaction:
        return SyncTransaction(self._context.transaction(connection), self._run)

    def artifact(self, name: str, content: Content, *, type: str | None = None) -> ArtifactReceipt:  # noqa: A002
        with upload_request(name, content, type) as file:
            kept: ArtifactReceipt = self._wait(file)
            return kept

    def _run(self, pending: PendingOperation) -> Any:
        return run_sync(self._context._port, pending.script)

    def _wait(self, ask: ExecutionRequest) -> Any:
        return run_sync(self._context._port, _asking(ask))


def _asking(ask: ExecutionRequest) -> Script[Any]:
    return (yield ask)
