"""The memory of durable code: the results of steps, the ends of sleeps, received signals, and the checkpoint.

A resumed function runs again from its beginning, and each remembered step returns its result at once. No history is
replayed, so the code need not be deterministic. Steps are identified by name and count: the second step "charge" of an
execution is another one than the first.
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
SHORT: Micros = SECOND  # the longest sleep that does not suspend: suspending and resuming take time, too
FIRST_PAUSE: Micros = SECOND  # before the second try of a step; the pause doubles with each further try
LAST_PAUSE: Micros = 3600 * SECOND  # the longest pause
MOST_NAME = 400  # characters
_COUNTED = re.compile(r"#\d+$")

Backoff = Span | Sequence[Span] | None


class StepMemory:
    """The remembered steps of one execution, during its present attempt.

    The steps of earlier attempts are read from the server when they are first needed.
    """

    def __init__(self, port: ExecutionPort, *, attempt: int, durable: bool, warn: Callable[..., object]) -> None:
        self._port, self._durable, self._warn = port, durable, warn
        self._counts: Counter[str] = Counter()
        self._steps: dict[str, Raw] | None = None if attempt > 1 else {}  # None: not read yet

    def key(self, name: str) -> str:
        """Return the key of the next step with this name."""
        self._counts[name] += 1
        return numbered_key(name, self._counts[name])

    # Scripts

    def step(self, key: str, call: FunctionCall, retries: int, backoff: Backoff) -> Script[Any]:
        """Return the remembered result of a step; if there is none, run its function and remember the result.

        If the function fails, it is run again up to `retries` times.
        """
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
                self._warn("step %r failed (%s: %s) and will be tried again", key, type(error).__name__, error)
            yield from self._nap(pause)

    def sleep(self, key: str, span: Micros | None, until: Instant | None) -> Script[None]:
        """Wait for a span or until an instant. A wait longer than `SHORT` suspends the execution."""
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
        """Return the payload of the signal if it has arrived; otherwise suspend the execution until it arrives."""
        known = yield from self._known()
        if key not in known:
            self._must_be_durable("wait for a signal")
            awaited: Awaited = yield WaitForSignal(key, signal, condition, timeout)
            if not awaited.result:
                raise Suspended(awaited.deadline, (key,))
            known[key] = awaited.result
        answer = msgspec.json.decode(known[key])
        if answer.get("timedOut"):
            raise SignalTimeout(f"no signal {signal!r} arrived in time")
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
        """Run steps concurrently; the result of each is remembered as soon as it ends."""
        if limit is not None and limit < 1:
            raise ValueError("limit must be at least 1")
        yield from self._known()
        return (
            yield ParallelScripts(
                [part.script if isinstance(part, PendingOperation) else _call_script(part) for part in parts], limit
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


def _call_script(part: Awaitable[Any] | Callable[[], Any]) -> Script[Any]:
    """Run an argument of `gather` that is not an operation of `ctx`: an awaitable, or in sync functions a callable."""
    return (yield FunctionCall(part if callable(part) else lambda: part))


def numbered_key(name: str, count: int) -> str:
    """Return a unique key for the use of a name: the name itself for the first use, then "name#2", "name#3", ...

    A name that itself ends with "#" and a number gets the count at its first use, too, so that keys stay unique.
    """
    return name if count == 1 and not _COUNTED.search(name) else f"{name}#{count}"


def check_name(name: str) -> str:
    """Return a valid name of a step. Raises ValueError for any other name."""
    if not isinstance(name, str) or not name or len(name) > MOST_NAME or "\0" in name:
        raise ValueError(f"the name of a step must be a string of 1 to {MOST_NAME} characters")
    if name.startswith("@"):
        raise ValueError(f"the name of a step must not begin with @, as {name!r} does: such names are Horae's own")
    return name


def check_signal(name: str) -> str:
    """Return a valid name of a signal. Raises ValueError for any other name."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_SIGNAL_NAME or "\0" in name:
        raise ValueError(f"the name of a signal must be a string of 1 to {MAX_SIGNAL_NAME} characters")
    return name


def encode_value(value: Any, what: str, most: int) -> Raw:
    """Encode a value as JSON. Raises BadResult, or ResultTooLarge if it has more than `most` bytes.

    `what` names the value in the error message.
    """
    try:
        result = msgspec.json.encode(value)
    except Exception as error:
        raise BadResult(f"{what} cannot be stored as JSON: {error}") from error
    if len(result) > most:
        message = f"{what} has {len(result)} bytes and {most} are allowed; store it elsewhere and keep a reference"
        raise ResultTooLarge(message)
    return Raw(result)


def retry_delay(tried: int, error: Exception, backoff: Backoff) -> Micros:
    """Return the time to wait before a step is tried again, after `tried` failures, of which `error` is the last."""
    if isinstance(error, Retry) and error.after is not None:
        return error.after
    if isinstance(backoff, Sequence) and not isinstance(backoff, str):
        return micros_of(backoff[min(tried, len(backoff)) - 1]) if backoff else 0
    first = FIRST_PAUSE if backoff is None else micros_of(backoff)
    return int(min(LAST_PAUSE, first * 2.0 ** min(tried - 1, 40)))
