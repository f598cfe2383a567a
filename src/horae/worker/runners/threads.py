"""Runs sync functions in threads. A chunk of short executions costs only one switch to a thread and back."""

from queue import SimpleQueue
from threading import Thread

from horae.env import SECOND
from horae.worker.code.context import CURRENT
from horae.worker.code.current_trace import in_trace
from horae.worker.code.failure import TIMED_OUT, outcome_after_stop
from horae.worker.holding import RELEASED, ItemOutcome, StartedItem
from horae.worker.runners.artifacts import is_large, private_result_failure, upload_result_sync
from horae.worker.runners.base import BaseRunner, ChunkRun, RunnerHost
from horae.worker.runners.outcome import encoded, exception_outcome


class ThreadRunner(BaseRunner):
    """Runs chunks in threads. It has as many threads as were ever needed at once.

    A thread cannot be stopped, but it ends with the process.
    """

    def __init__(self, host: RunnerHost) -> None:
        super().__init__(host)
        self._queue: SimpleQueue[ChunkRun | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0

    def begin(self, run: ChunkRun) -> None:
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            Thread(target=self._serve, name=f"horae-{self._threads}", daemon=True).start()
        self._queue.put(run)

    def stop(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        """Do nothing but wait for the function, which can see `ctx.cancelled`.

        After a timeout, and when the worker leaves, do not wait: report the outcome at once.
        """
        if kind != "drain" and kind not in TIMED_OUT:
            return
        fate = outcome_after_stop(kind, RELEASED, once=run.plan.once)
        if isinstance(fate, ItemOutcome) and run.session.decide(run.chunk, begun, fate):
            run.session.stock.put_back(run.chunk)
            self.host.after(run.plan.spec.grace / SECOND, self._give_up_on, run)

    async def close(self) -> None:
        for _ in range(self._threads):
            self._queue.put(None)

    def _give_up_on(self, run: ChunkRun) -> None:
        if not run.is_over:
            self.host.report_stuck(run)

    def _serve(self) -> None:
        while (run := self._queue.get()) is not None:
            CURRENT.set(run.context)
            self._work(run)
            self.host.post(self._finish, run)
            del run  # an idle thread holds no references

    def _finish(self, run: ChunkRun) -> None:
        self._busy -= 1
        self.host.release_slot(run)

    def _work(self, run: ChunkRun) -> None:
        chunk, plan, monotonic = run.chunk, run.plan, self.clock.monotonic
        bind, function, wants, interrupts = plan.bind, plan.function, plan.wants_context, run.interrupts
        tracing = self.host.tracing is not None
        now = monotonic()
        while begun := chunk.begin(now):
            held_slice, index, _ = begun
            outcome: bytes | ItemOutcome
            try:
                context = run.context_of(begun) if wants else None
                args, kwargs = bind(held_slice.item(index), context)
                call = in_trace(run.trace_of(begun), function) if tracing or held_slice.traced else function
                value = call(*args, **kwargs)
                if context is not None:
                    context._check_done()
                outcome = encoded(value)
            except BaseException as error:
                outcome = exception_outcome(plan, begun, error)
            if outcome.__class__ is ItemOutcome and is_large(outcome) and plan.spec.sensitive:
                outcome = private_result_failure()
            elif outcome.__class__ is ItemOutcome and is_large(outcome):
                outcome = upload_result_sync(run.context_of(begun)._port, run.mask_outcome(begun, outcome))
            now = monotonic()
            if interrupts:
                run.settle(begun, now, outcome)
            else:
                chunk.end(begun, now, outcome)
