"""Sends the requests of running executions, and repeats each until a server answers."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from msgspec import Raw

from horae.env import SECOND, Env
from horae.errors import BadInput, Busy, SessionEnded
from horae.model.fleet.protocol import Await, Step
from horae.model.fleet.submit import ChildSubmit
from horae.worker.code.execution_requests import (
    ChildReceipt,
    ExecutionRequest,
    ReadServerTime,
    RecallSteps,
    RememberStep,
    ShortSleep,
    SubmitExecutions,
    UploadArtifact,
    WaitForSignal,
)
from horae.worker.code.step_batches import StepBatcher
from horae.worker.exchange.outbox import key_of
from horae.worker.holding import Item
from horae.worker.session import WorkerSession
from horae.worker.transport import Transport

FIRST_WAIT = 0.05  # seconds before a request is repeated


class RequestSender:
    """Sends the requests of all executions of a worker.

    `back_off` waits for about the given number of seconds, and returns the number of seconds for the next wait.
    """

    def __init__(self, env: Env, transport: Transport, back_off: Callable[[float], Awaitable[float]]) -> None:
        self._env, self._transport, self._back_off = env, transport, back_off
        self._step_batcher = StepBatcher(transport.remember)

    async def run(self, session: WorkerSession, item: Item, ask: ExecutionRequest) -> Any:
        """Send an execution's request to the servers until one answers."""
        wait = FIRST_WAIT
        while not session.ended:
            try:
                return await self._once(session, item, ask)
            except Busy:
                wait = await self._back_off(wait)
        raise SessionEnded("The worker's session has ended.", "Stop: this execution no longer belongs to this worker.")

    async def close(self) -> None:
        """Cancel the calls in flight that store steps."""
        await self._step_batcher.close()

    async def _once(self, session: WorkerSession, item: Item, ask: ExecutionRequest) -> Any:
        parcel, index, attempt = key_of(item)
        if isinstance(ask, RememberStep):
            step = Step(parcel=parcel, item=index, attempt=attempt, name=ask.name, result=ask.result)
            return await self._step_batcher.remember(session.id, step)
        if isinstance(ask, RecallSteps):
            return await self._recall(session, parcel, index)
        if isinstance(ask, ReadServerTime):
            return session.time.instant(self._env.clock.monotonic())
        if isinstance(ask, ShortSleep):
            return await self._env.clock.sleep(ask.span / SECOND)
        if isinstance(ask, UploadArtifact):
            return await self._transport.upload_artifact(session.id, parcel, index, attempt, ask)
        if isinstance(ask, WaitForSignal):
            wait = Await(
                parcel=parcel, item=index, attempt=attempt, step=ask.step, signal=ask.signal, filter=ask.filter,
                timeout=ask.timeout,
            )  # fmt: skip
            return await self._transport.wait_for_signal(session.id, wait)
        body = ChildSubmit(parcel=parcel, item=index, attempt=attempt, call=ask.call, submissions=ask.submissions)
        return await self._submit(session, body, ask)

    async def _submit(self, session: WorkerSession, body: ChildSubmit, ask: SubmitExecutions) -> list[ChildReceipt]:
        taken = await self._transport.submit_children(session.id, body)
        if len(taken) < len(ask.submissions):
            message = (
                f"The server accepted {len(taken)} of {len(ask.submissions)} submissions of {ask.submissions[0].job!r}."
            )
            raise BadInput(message, "Check that the job exists and accepts these params.", field="job")
        return taken

    async def _recall(self, session: WorkerSession, parcel: UUID, item: int) -> dict[str, Raw]:
        """Return the results of all steps that earlier attempts remembered, by name; they are read in pages."""
        found: dict[str, Raw] = {}
        after: str | None = ""
        while after is not None:
            page = await self._transport.known_steps(session.id, parcel, item, after)
            found |= page.steps
            after = page.next
        return found
