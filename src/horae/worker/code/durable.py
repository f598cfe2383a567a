"""The memory of durable code: steps by name and count, sleeps, received signals, and the checkpoint.

There is no replay, and code need not be deterministic: a resumed function runs from its beginning, and a remembered
step returns at once. The second "charge" of an execution is another step than the first.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from horae.env import SECOND, Instant, Micros
from horae.model.executions.job_exceptions import (
    BadResult,
    Cancelled,
    GiveUp,
    NotDurable,
    ResultTooLarge,
    Retry,
    SignalTimeout,
    Span,
    Suspended,
    micros_of,
)
from horae.model.fleet.protocol import MAX_CHECKPOINT, MAX_RESULT, MAX_SIGNAL_NAME, Awaited
from horae.worker.code.execution_requests import (
    ExecutionPort,
    ReadServerTime,
    RecallSteps,
    RememberStep,
    ShortSleep,
    WaitForSignal,
)
from horae.worker.processes.scripts import FunctionCall, ParallelScripts, PendingOperation, Script

CHECKPOINT = "@checkpoint"
SLEEP = "@sleep"
WAIT = "@wait:"
SHORT: Micros = SECOND  # a sleep up to this does not suspend: to resume takes time, too
FIRST_PAUSE: Micros = SECOND  # between two tries of a step, doubled each time
LAST_PAUSE: Micros = 3600 * SECOND
MOST_NAME = 400  # characters
_COUNTED = re.compile(r"#\d+$")

Backoff = Span | Sequence[Span] | None


class StepMemory:
    """The remembered steps of one execution, as its present attempt knows them."""

    def __init__(self, port: ExecutionPort, *, attempt: int, durable: bool, warn: Callable[..., object]) -> None:
        self._port, self._durable, self._warn = port, durable, warn
        self._counts: Counter[str] = Counter()
        self._steps: dict[str, Raw] | None = None if attempt > 1 else {}  # None: not requested yet

    def key(self, name: str) -> str:
        """Return the key of the next step with this name."""
        self._counts[name] += 1
        return numbered_key(name, self._counts[name])

    # Scripts

    def step(self, key: str, call: FunctionCall, retries: int, backoff: Backoff) -> Script[Any]:
        """Run a function unless its result is remembered; repeat it by the step's own retries."""
        known = yield from self._known()
        if key not in known:
            self._stop_if_asked()
            value = yield from self._tried(key, call, retries, backoff)
            known[key] = yield RememberStep(key, encode_value(value, f"The result of step {key!r}", MAX_RESULT))
            self._port.heartbeat()
        return msgspec.json.decode(known[key])

    def _tried(self, key: str, call: FunctionCall, retries: int, backoff: Backoff) -> Script[Any]:
        tried = 0
        while True:
            try:
                return (yield call)
            except (GiveUp, Cancelled):
                raise
            except Exception as error:
                tried += 1
                if tried > retries:
                    raise
                pause = retry_delay(tried, error, backoff)
                self._warn("step %r failed (%s: %s) and is tried again", key, type(error).__name__, error)
            yield from self._nap(pause)

    def sleep(self, key: str, span: Micros | None, until: Instant | None) -> Script[None]:
        """Wait for a span or until an instant, without a worker if it is long."""
        known = yield from self._known()
        now: Instant = yield ReadServerTime()
        if key in known:
            until = int(msgspec.json.decode(known[key]))
        else:
            until = now + (span or 0) if until is None else until
            if until - now > SHORT:
                self._must_be_durable("sleep")
                known[key] = yield RememberStep(key, Raw(msgspec.json.encode(until)))
                until = int(msgspec.json.decode(known[key]))
        if until - now > SHORT:
            self._must_be_durable("sleep")
            raise Suspended(until)
        yield from self._nap(until - now)

    def wait_for(self, key: str, signal: str, condition: str | None, timeout: Micros | None) -> Script[Any]:
        """Return the payload of a received signal; otherwise wait for it without a worker."""
        known = yield from self._known()
        if key not in known:
            self._must_be_durable("wait for a signal")
            awaited: Awaited = yield WaitForSignal(key, signal, condition, timeout)
            if not awaited.result:
                raise Suspended(awaited.deadline, (key,))
            known[key] = awaited.result
        answer = msgspec.json.decode(known[key])
        if answer.get("timedOut"):
            raise SignalTimeout(f"no signal {signal!r} came in time")
        return answer["payload"]

    def checkpoint(self, state: Any) -> Script[None]:
        """Store a state for the next attempt, instead of the previous one."""
        known = yield from self._known()
        value = encode_value(state, "The checkpoint", MAX_CHECKPOINT)
        yield RememberStep(CHECKPOINT, value)
        self._port.heartbeat()
        known[CHECKPOINT] = value
        self._stop_if_asked()

    def restored(self, default: Any) -> Script[Any]:
        """Return the last stored state, of any attempt."""
        known = yield from self._known()
        return msgspec.json.decode(known[CHECKPOINT]) if CHECKPOINT in known else default

    def gather(
        self, parts: Sequence[PendingOperation | Awaitable[Any] | Callable[[], Any]], limit: int | None
    ) -> Script[Any]:
        """Run steps concurrently; each ended step is remembered by itself."""
        if limit is not None and limit < 1:
            raise ValueError("limit must be at least 1")
        yield from self._known()
        return (
            yield ParallelScripts(
                [part.script if isinstance(part, PendingOperation) else _alone(part) for part in parts], limit
            )
        )

    # Shared parts

    def _known(self) -> Script[dict[str, Raw]]:
        if self._steps is None:
            found: dict[str, Raw] = yield RecallSteps()
            if self._steps is None:
                self._steps = found
        return self._steps

    def _nap(self, span: Micros) -> Script[None]:
        """Wait without suspending; a request to stop the execution ends the wait."""
        while span > 0:
            self._stop_if_asked()
            piece = min(span, SECOND)
            yield ShortSleep(piece)
            span -= piece

    def _stop_if_asked(self) -> None:
        if self._port.interrupted is not None:
            raise Cancelled(f"stopped by request ({self._port.interrupted})")

    def _must_be_durable(self, what: str) -> None:
        if not self._durable:
            message = f"only a durable job can {what} without a worker; declare it with @app.job(durable=True)"
            raise NotDurable(message)


def _alone(part: Awaitable[Any] | Callable[[], Any]) -> Script[Any]:
    """Run a part of `gather` that is no step: an awaitable, or in sync functions a call."""
    return (yield FunctionCall(part if callable(part) else lambda: part))


def numbered_key(name: str, count: int) -> str:
    """Return a unique key for a name and its count: the first is the plain name, unless that looks counted."""
    return name if count == 1 and not _COUNTED.search(name) else f"{name}#{count}"


def check_name(name: str) -> str:
    """Return the name of a step, or raise ValueError."""
    if not isinstance(name, str) or not name or len(name) > MOST_NAME or "\0" in name:
        raise ValueError(f"a step's name is a text of 1 to {MOST_NAME} characters")
    if name.startswith("@"):
        raise ValueError(f"{name!r}: names of steps that begin with @ are Horae's own")
    return name


def check_signal(name: str) -> str:
    """Return the name of a signal, or raise ValueError."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_SIGNAL_NAME or "\0" in name:
        raise ValueError(f"a signal's name is a text of 1 to {MAX_SIGNAL_NAME} characters")
    return name


def encode_value(value: Any, what: str, most: int) -> Raw:
    """Return a value as JSON, if it can be stored."""
    try:
        result = msgspec.json.encode(value)
    except Exception as error:
        raise BadResult(f"{what} cannot be stored as JSON: {error}") from error
    if len(result) > most:
        message = f"{what} has {len(result)} bytes and {most} are allowed; store it elsewhere and keep a reference"
        raise ResultTooLarge(message)
    return Raw(result)


def retry_delay(tried: int, error: Exception, backoff: Backoff) -> Micros:
    """Return the time that a step waits after this many failures."""
    if isinstance(error, Retry) and error.after is not None:
        return error.after
    if isinstance(backoff, Sequence) and not isinstance(backoff, str):
        return micros_of(backoff[min(tried, len(backoff)) - 1]) if backoff else 0
    first = FIRST_PAUSE if backoff is None else micros_of(backoff)
    return int(min(LAST_PAUSE, first * 2.0 ** min(tried - 1, 40)))
