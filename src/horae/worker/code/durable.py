"""What durable code remembers: steps by name and count, how long it sleeps, what it waited for, its checkpoint.

Nothing is replayed and nothing has to be deterministic: a resumed function runs from its beginning, and whatever is
remembered under a name answers at once. The second "charge" of an execution is another step than the first.
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
from horae.worker.code.asks import ExecutionPort, ReadServerTime, RecallSteps, RememberStep, ShortSleep, WaitForSignal
from horae.worker.processes.scripts import FunctionCall, ParallelScripts, PendingOperation, Script

CHECKPOINT = "@checkpoint"
SLEEP = "@sleep"
WAIT = "@wait:"
SHORT: Micros = SECOND  # a sleep up to this is slept where it is: coming back takes its time, too
FIRST_PAUSE: Micros = SECOND  # between two tries of a step, doubled each time
LAST_PAUSE: Micros = 3600 * SECOND
MOST_NAME = 400  # characters
_COUNTED = re.compile(r"#\d+$")

Backoff = Span | Sequence[Span] | None


class StepMemory:
    """What one execution remembers, as its present attempt knows it."""

    def __init__(self, port: ExecutionPort, *, attempt: int, durable: bool, warn: Callable[..., object]) -> None:
        self._port, self._durable, self._warn = port, durable, warn
        self._counts: Counter[str] = Counter()
        self._steps: dict[str, Raw] | None = None if attempt > 1 else {}  # None: not asked yet

    def key(self, name: str) -> str:
        """The name under which the next step of this name is remembered."""
        self._counts[name] += 1
        return counted(name, self._counts[name])

    # Scripts

    def step(self, key: str, call: FunctionCall, retries: int, backoff: Backoff) -> Script[Any]:
        """Run a function unless its result is remembered; try again as the step itself says."""
        known = yield from self._known()
        if key not in known:
            self._stop_if_asked()
            value = yield from self._tried(key, call, retries, backoff)
            known[key] = yield RememberStep(key, encoded(value, f"The result of step {key!r}", MAX_RESULT))
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
                pause = pause_after(tried, error, backoff)
                self._warn("step %r failed (%s: %s) and is tried again", key, type(error).__name__, error)
            yield from self._nap(pause)

    def sleep(self, key: str, span: Micros | None, until: Instant | None) -> Script[None]:
        """Wait for a span, or until an instant, without a worker if it is long."""
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

    def wait_for(self, key: str, signal: str, filter: str | None, timeout: Micros | None) -> Script[Any]:
        """The payload of a signal that has come; otherwise wait for it without a worker."""
        known = yield from self._known()
        if key not in known:
            self._must_be_durable("wait for a signal")
            awaited: Awaited = yield WaitForSignal(key, signal, filter, timeout)
            if not awaited.result:
                raise Suspended(awaited.deadline, (key,))
            known[key] = awaited.result
        told = msgspec.json.decode(known[key])
        if told.get("timedOut"):
            raise SignalTimeout(f"no signal {signal!r} came in time")
        return told["payload"]

    def checkpoint(self, state: Any) -> Script[None]:
        """Keep a state for the next attempt, instead of the one before."""
        known = yield from self._known()
        value = encoded(state, "The checkpoint", MAX_CHECKPOINT)
        yield RememberStep(CHECKPOINT, value)
        self._port.heartbeat()
        known[CHECKPOINT] = value
        self._stop_if_asked()

    def restored(self, default: Any) -> Script[Any]:
        """The last state that was kept, by whichever attempt."""
        known = yield from self._known()
        return msgspec.json.decode(known[CHECKPOINT]) if CHECKPOINT in known else default

    def gather(
        self, parts: Sequence[PendingOperation | Awaitable[Any] | Callable[[], Any]], limit: int | None
    ) -> Script[Any]:
        """Run steps side by side; each that has ended is remembered by itself."""
        if limit is not None and limit < 1:
            raise ValueError("limit must be at least 1")
        yield from self._known()
        return (
            yield ParallelScripts(
                [part.script if isinstance(part, PendingOperation) else _alone(part) for part in parts], limit
            )
        )

    # What they have in common

    def _known(self) -> Script[dict[str, Raw]]:
        if self._steps is None:
            found: dict[str, Raw] = yield RecallSteps()
            if self._steps is None:
                self._steps = found
        return self._steps

    def _nap(self, span: Micros) -> Script[None]:
        """Wait where it is; whoever asks the execution to stop is heard."""
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
            said = f"only a durable job can {what} without a worker; declare it with @app.job(durable=True)"
            raise NotDurable(said)


def _alone(part: Awaitable[Any] | Callable[[], Any]) -> Script[Any]:
    """Something that is no step, beside steps: an awaitable, or in sync functions a call."""
    return (yield FunctionCall(part if callable(part) else lambda: part))


def counted(name: str, count: int) -> str:
    """A name with its count, told from every other: the first is the plain name, unless that looks counted."""
    return name if count == 1 and not _COUNTED.search(name) else f"{name}#{count}"


def check_name(name: str) -> str:
    """Refuse what cannot name a step."""
    if not isinstance(name, str) or not name or len(name) > MOST_NAME or "\0" in name:
        raise ValueError(f"a step's name is a text of 1 to {MOST_NAME} characters")
    if name.startswith("@"):
        raise ValueError(f"{name!r}: names of steps that begin with @ are Horae's own")
    return name


def check_signal(name: str) -> str:
    """Refuse what cannot name a signal."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_SIGNAL_NAME or "\0" in name:
        raise ValueError(f"a signal's name is a text of 1 to {MAX_SIGNAL_NAME} characters")
    return name


def encoded(value: Any, what: str, most: int) -> Raw:
    """A value as JSON, if it can be kept."""
    try:
        result = msgspec.json.encode(value)
    except Exception as error:
        raise BadResult(f"{what} cannot be stored as JSON: {error}") from error
    if len(result) > most:
        said = f"{what} has {len(result)} bytes and {most} are allowed; store it elsewhere and keep a reference"
        raise ResultTooLarge(said)
    return Raw(result)


def pause_after(tried: int, error: Exception, backoff: Backoff) -> Micros:
    """How long a step waits after so many failures."""
    if isinstance(error, Retry) and error.after is not None:
        return error.after
    if isinstance(backoff, Sequence) and not isinstance(backoff, str):
        return micros_of(backoff[min(tried, len(backoff)) - 1]) if backoff else 0
    first = FIRST_PAUSE if backoff is None else micros_of(backoff)
    return int(min(LAST_PAUSE, first * 2.0 ** min(tried - 1, 40)))
