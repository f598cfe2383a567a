"""Runs async functions as tasks on the loop. A slot runs one execution, or several short executions in sequence."""

import asyncio
from contextlib import nullcontext
from typing import ClassVar

import structlog

from horae.env import SECOND
from horae.worker.code.context import CURRENT
from horae.worker.code.current_trace import current_trace
from horae.worker.code.failure import failed, outcome_after_stop
from horae.worker.code.failure import format_traceback as traceback_of
from horae.worker.holding import RELEASED, ItemOutcome, StartedItem
from horae.worker.runners.artifacts import is_large, private_result_failure, upload_result
from horae.worker.runners.base import BaseRunner, ChunkRun, RunnerHost
from horae.worker.runners.outcome import encoded, exception_outcome

CLOSING = 1.0  # seconds that cancelled tasks get to end when the worker leaves

log = structlog.get_logger("horae.worker")


class TaskRunner(BaseRunner):
    """Runs each chunk in a task. To stop an execution, its present `await` is cancelled."""

    is_always_ready: ClassVar[bool] = True

    def __init__(self, host: RunnerHost) -> None:
        super().__init__(host)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, run: ChunkRun) -> None:
        run.grip = asyncio.get_running_loop().create_task(self._work(run))
        self._tasks.add(run.grip)
        run.grip.add_done_callback(self._tasks.discard)

    def stop(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        run.grip.cancel()
        self.host.after(run.plan.spec.grace / SECOND, self._give_up_on, run, begun, kind)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING)

    async def ready(self, run: ChunkRun) -> bool:
        """Prepare for the next item, and return whether it can be run. Not called if the runner is always ready."""
        return True

    def done(self, run: ChunkRun) -> None:
        """Release the resources that `ready` has reserved."""

    async def run_item(self, run: ChunkRun, begun: StartedItem) -> bytes | ItemOutcome:
        """Run one item to its end. An exception that escapes is this worker's fault, not the job's."""
        plan = run.plan
        try:
            context = run.context_of(begun) if plan.wants_context else None
            args, kwargs = plan.bind(begun[0].item(begun[1]), context)
            trace = run.trace_of(begun)
            with current_trace(trace) if trace.parent else nullcontext():
                value = await plan.function(*args, **kwargs)
            if context is not None:
                context._check_done()
            return encoded(value)
        except BaseException as error:
            if _is_ours(error, run, begun):
                raise
            return exception_outcome(plan, begun, error)

    def _give_up_on(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        """Report the end of an item whose function ignores its cancellation. It keeps its slot until it really ends."""
        fate = outcome_after_stop(kind, RELEASED, once=run.plan.once)
        if isinstance(fate, ItemOutcome) and run.session.decide(run.chunk, begun, fate):
            self.host.report_stuck(run)

    async def _work(self, run: ChunkRun) -> None:
        CURRENT.set(run.context)
        chunk, interrupts, monotonic = run.chunk, run.interrupts, self.clock.monotonic
        try:
            while begun := (chunk.begin(monotonic()) if self.is_always_ready or await self.ready(run) else None):
                try:
                    outcome = await self.run_item(run, begun)
                except BaseException as error:
                    outcome = self._broken(run, begun, error)
                if outcome.__class__ is ItemOutcome and is_large(outcome) and run.plan.spec.sensitive:
                    outcome = private_result_failure()
                elif outcome.__class__ is ItemOutcome and is_large(outcome) and begun not in interrupts:
                    if begun[0].secrets is not None:
                        outcome = await asyncio.to_thread(run.mask_outcome, begun, outcome)
                    outcome = await upload_result(run.context_of(begun)._port, outcome)
                if begun in interrupts:
                    run.grip.uncancel()  # the item was cancelled, not the task
                run.settle(begun, monotonic(), outcome)
        finally:
            self.done(run)
            self.host.release_slot(run)

    def _broken(self, run: ChunkRun, begun: StartedItem, error: BaseException) -> ItemOutcome:
        if _is_ours(error, run, begun):
            raise error
        if run.session.ended or begun in run.interrupts:
            return RELEASED
        hidden = run.hide(begun, traceback_of(error, whole=True))
        log.error("an execution could not be run", **run.log_fields(begun), traceback=hidden)
        return failed("CannotRun", f"the worker could not run it: {type(error).__name__}: {error}", kind="platform")


def _is_ours(error: BaseException, run: ChunkRun, begun: StartedItem) -> bool:
    """Return whether the whole task was cancelled, because the worker leaves, and not only the item."""
    return isinstance(error, asyncio.CancelledError) and begun not in run.interrupts and bool(run.grip.cancelling())
