"""The common part of all runners: a running chunk, time limits, and interruptions."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import RLock
from typing import Any, Protocol

from msgspec import structs

from horae.env import SECOND, Env, Instant
from horae.errors import BadInput
from horae.model.base.redaction import MASK
from horae.model.base.trace import UNTRACED, TraceHeaders, trace_id_of
from horae.model.fleet.protocol import LogStream
from horae.worker.attempt_log import AttemptLog
from horae.worker.code.context import NO_SECRETS, Context
from horae.worker.code.execution_requests import ExecutionRequest
from horae.worker.code.failure import clean, outcome_after_stop
from horae.worker.code.tracing import AttemptTracer
from horae.worker.holding import Chunk, Item, ItemOutcome, StartedItem
from horae.worker.plan import PreparedJob
from horae.worker.processes.spawner import Spawner
from horae.worker.secrets import failed_answer
from horae.worker.session import WorkerSession
from horae.worker.settings import WorkerSettings
from horae.worker.timers import ScheduledCall

# Held while a context is created, because two contexts of one item would use the same numbers for log lines. Reentrant,
# because a finaliser that runs meanwhile in the same thread may log, and then needs the context, too.
_MAKING = RLock()
BEATS = 3  # signs of life sent to the server within one heartbeat timeout


class RunnerHost(Protocol):
    """The loop's interface for runners."""

    env: Env
    settings: WorkerSettings
    spawner: Spawner
    tracing: AttemptTracer | None

    def post(self, call: Callable[..., object], *args: Any) -> None:
        """Make a call on the loop's thread, from any thread, in order."""
        ...

    def after(self, seconds: float, call: Callable[..., object], *args: Any) -> ScheduledCall:
        """Make a call on the loop's thread later."""
        ...

    def release_slot(self, run: "ChunkRun") -> None:
        """Take a chunk back from the slot that ran it."""
        ...

    def report_stuck(self, run: "ChunkRun") -> None:
        """Note that an execution cannot be stopped or killed."""
        ...

    def ask(self, session: WorkerSession, item: Item, ask: ExecutionRequest) -> "Future[Any]":
        """Send an execution's request to the server."""
        ...


class ChunkRun:
    """A running chunk: its items that must stop, and the context of its running item."""

    __slots__ = (
        "_context",
        "_context_of",
        "chunk",
        "grip",
        "held",
        "host",
        "interrupts",
        "is_over",
        "last_beat",
        "plan",
        "session",
        "watch",
    )

    def __init__(self, host: RunnerHost, session: WorkerSession, chunk: Chunk, plan: PreparedJob) -> None:
        self.host = host
        self.session = session
        self.chunk = chunk
        self.plan = plan
        self.interrupts: dict[StartedItem, str] = {}  # the kinds of interruption, by item
        self.is_over = False
        self.watch: ScheduledCall | None = None  # watches the time limit of the present item
        self.grip: Any = None  # the task that works through the chunk
        self.held: tuple[StartedItem, Any] | None = None  # the present item and its process or command
        self.last_beat: tuple[StartedItem, float] | None = None  # an item and its last sign of life
        self._context: Context | None = None
        self._context_of: StartedItem | None = None

    def settle(self, begun: StartedItem, now: float, outcome: bytes | ItemOutcome) -> None:
        """End an item. If it was interrupted, its outcome is adjusted to the kind of interruption."""
        kind = self.interrupts.pop(begun, None)
        self.chunk.end(begun, now, outcome if kind is None else outcome_after_stop(kind, outcome, once=self.plan.once))

    def mark_interrupted(self, begun: StartedItem, kind: str) -> bool:
        """Note that an item must stop; return False if this was noted before, or if the item does not run any more."""
        if begun in self.interrupts or self.chunk.running() is not begun:
            return False
        self.interrupts[begun] = kind
        return True

    def hold(self, begun: StartedItem, grip: Any) -> None:
        """Remember the process or command that runs an item, to stop it."""
        self.held = (begun, grip)

    def grip_of(self, begun: StartedItem) -> Any:
        return self.held[1] if self.held is not None and self.held[0] is begun else None

    def context_of(self, begun: StartedItem) -> Context:
        """Return the context of a started item, created once for all its threads."""
        if self._context is None or self._context_of is not begun:
            with _MAKING:
                made = self._make_context(begun)
                if self._context is None or self._context_of is not begun:
                    self._context, self._context_of = made, begun
        return self._context

    def _make_context(self, begun: StartedItem) -> Context:
        facts = self.plan.facts(begun[0], begun[1], self.deadline(begun))
        if self.host.tracing is not None:
            facts = structs.replace(facts, trace=self.host.tracing.header(begun[0], begun[1]))
        secrets = begun[0].secrets
        return Context(facts, LocalPort(self, begun), NO_SECRETS if secrets is None else secrets.values)

    def trace_of(self, begun: StartedItem) -> TraceHeaders:
        """Return the trace of an item's attempt, `UNTRACED` for most."""
        if self.host.tracing is None and not begun[0].traced:
            return UNTRACED
        context = self.context_of(begun)
        return TraceHeaders(context.trace, context.trace_state)

    def log_fields(self, begun: StartedItem) -> dict[str, str | int]:
        """Return the fields of a line about an item in the worker's own log."""
        fields: dict[str, str | int] = {
            "execution": str(begun[0].execution(begun[1])),
            "job": self.plan.spec.name,
            "attempt": begun[0].grant.attempt,
        }
        trace = trace_id_of(self.trace_of(begun).parent)
        return fields if trace is None else fields | {"trace": trace}

    def context(self) -> Context | None:
        """Return the context of the item that runs in this slot now."""
        begun = self.chunk.running()
        return self._context if begun is None else self.context_of(begun)

    def plan_of(self, begun: StartedItem) -> PreparedJob:
        """Return the plan with the secrets of an item filled in."""
        secrets = begun[0].secrets
        if secrets is None:
            return self.plan
        if secrets.plan is None:
            secrets.plan = self.plan.filled(secrets.values)
        plan: PreparedJob = secrets.plan
        return plan

    def hide(self, begun: StartedItem, text: str) -> str:
        """Mask the secrets of an item in a text."""
        secrets = begun[0].secrets
        return text if secrets is None else secrets.mask_text(text)

    def mask_outcome(self, begun: StartedItem, fate: ItemOutcome) -> ItemOutcome:
        """Mask the secrets of an item in its outcome."""
        secrets = begun[0].secrets
        covered: ItemOutcome = fate if secrets is None else secrets.mask_outcome(fate)
        return covered

    def deadline(self, begun: StartedItem) -> Instant | None:
        """Return the time by which an item must end."""
        timeout, within = self.plan.spec.timeout, self.plan.spec.retry.within
        ends = [] if timeout is None else [self.session.time.instant(begun[2]) + timeout]
        if within is not None:
            ends.append(begun[0].grant.due_at + within)
        return min(ends, default=None)

    def time_left(self, begun: StartedItem, now: float) -> tuple[float, str]:
        """Return the seconds until an item is stopped, and the kind of timeout; its job has at least one."""
        spec = self.plan.spec
        ends: list[tuple[float, str]] = []
        if spec.timeout is not None:
            ends.append((begun[2] + spec.timeout / SECOND, "timeout"))
        if spec.timeouts.heartbeat is not None:
            heard = self.last_beat
            last = heard[1] if heard is not None and heard[0] is begun else begun[2]
            ends.append((last + spec.timeouts.heartbeat / SECOND, "heartbeat"))
        if spec.retry.within is not None:
            ends.append((self.session.time.monotonic(begun[0].grant.due_at + spec.retry.within), "total"))
        end, kind = min(ends)
        return end - now, kind


class LocalPort:
    """The connection from an execution in this process to its session."""

    def __init__(self, run: ChunkRun, begun: StartedItem) -> None:
        self._run = run
        self._begun = begun
        self._secrets = begun[0].secrets
        self._journal = AttemptLog(run, begun)
        self._progress: tuple[float, str] | None = None
        self._beat_at = 0.0  # monotonic time before which no further sign of life is sent

    @property
    def interrupted(self) -> str | None:
        return self._run.interrupts.get(self._begun) or ("lost" if self._run.session.ended else None)

    @property
    def journal(self) -> AttemptLog:
        return self._journal

    def heartbeat(self) -> None:
        """Note a sign of life. At most `BEATS` within one heartbeat timeout are sent to the server."""
        now = self._run.host.env.clock.monotonic()
        self._run.last_beat = (self._begun, now)
        allowed = self._run.plan.spec.timeouts.heartbeat
        if allowed is not None and now >= self._beat_at:
            self._beat_at = now + allowed / SECOND / BEATS
            self._run.host.post(self._run.session.progress, self._begun[:2], None)

    def progress(self, percent: float, message: str) -> None:
        self._run.last_beat = (self._begun, self._run.host.env.clock.monotonic())
        posted = self._progress is not None
        bounded = min(100.0, max(0.0, percent))  # a server refuses other values, with the whole exchange
        self._progress = (bounded, clean(self.hide(message))[:1000])
        if not posted:
            self._run.host.post(self._flush)

    def log(self, stream: LogStream, text: str) -> None:
        self._journal.write(stream, text if self._secrets is None else self._secrets.mask_text(text))

    def hide(self, text: str) -> str:
        return text if self._secrets is None else self._secrets.mask_text(text)

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        if self._secrets is not None:
            try:
                ask, covered = self._secrets.mask_request(ask)
            except BadInput as error:
                return failed_answer(error)
            if covered:
                self.log("log", f"WARNING {MASK} stands for a secret in {covered}")
        return self._run.host.ask(self._run.session, self._begun[:2], ask)

    def _flush(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            self._run.session.progress(self._begun[:2], *progress)


class BaseRunner:
    """Works through chunks. Subclasses define how to run a chunk and how to stop an item."""

    def __init__(self, host: RunnerHost) -> None:
        self.host = host
        self.clock = host.env.clock

    def launch(self, session: WorkerSession, chunk: Chunk, plan: PreparedJob) -> None:
        """Start to work through a chunk. At its end, the runner calls `RunnerHost.release_slot`."""
        run = ChunkRun(self.host, session, chunk, plan)
        chunk.run = run
        self.begin(run)
        if plan.is_watched:
            self._watch(run, plan.look_after)

    def interrupt(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        """Make an item stop; only the first interruption counts."""
        if run.mark_interrupted(begun, kind):
            self.stop(run, begun, kind)

    def begin(self, run: ChunkRun) -> None:
        raise NotImplementedError

    def stop(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Stop everything at once."""

    def _watch(self, run: ChunkRun, seconds: float) -> None:
        run.watch = self.host.after(seconds, self._look, run)

    def _look(self, run: ChunkRun) -> None:
        """Stop the running item if its time is up, and schedule the next check for the end of its time."""
        if run.is_over:
            return
        begun = run.chunk.running()
        left, kind = run.time_left(begun, self.clock.monotonic()) if begun else (run.plan.look_after, "")
        if begun is not None and left <= 0:
            self.interrupt(run, begun, kind)
            left = run.plan.look_after
        self._watch(run, left)
