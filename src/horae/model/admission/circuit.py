"""Circuit breakers: a job that fails too often is stopped for a while, then tried with a few executions, the probes.

A circuit is closed while the job succeeds, open after too many failures, and half-open when the open time is over. A
half-open circuit lets a few probes run; their results open or close it. A job has one circuit, or one for each value of
a key. Every attempt counts, also retries. An attempt that ended because its worker was lost does not count.
"""

import re
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import HOUR, MINUTE, format_duration
from horae.model.base.instant import format_instant
from horae.model.fields.kinds import Custom, Duration, Integer, Key
from horae.model.fields.table import Field, Object

CircuitState = Literal["closed", "open", "half-open"]
BUCKETS = 30  # parts of a window that are counted separately
NO_USER = ""  # `by` of a change that no user made
_PERCENT = re.compile(r"\s*(\d{1,3})\s*%\s*")
_EXAMPLE = 'Write {"failures": "50%", "window": "1m", "minimum": 10, "openFor": "30s", "probes": 1}.'


def _percent(value: Any, at: str) -> int:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= 100:
        remedy = 'Write the percentage at which the circuit opens, from "1%" to "100%".'
        raise BadInput(f"{at} is {str(value)[:40]!r}, not a share of the attempts.", remedy, field=at)
    return int(found[1])


PERCENT = Custom(_percent, str, "str", lambda percent: f"{percent}%")


class Circuit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The settings of a job's circuit, which opens when too large a share of the attempts within a window failed."""

    failures: Annotated[int, Field(PERCENT, "The share of failed attempts at which it opens.", metavar="PERCENT")] = 50
    window: Annotated[Micros, Field(Duration(SECOND, HOUR), "The time over which attempts are counted.")] = MINUTE
    minimum: Annotated[
        int, Field(Integer(1, 1_000_000, _EXAMPLE), "It opens only after so many attempts in the window.")
    ] = 10
    open_for: Annotated[Micros, Field(Duration(SECOND, 24 * HOUR), "How long it stays open.")] = 30 * SECOND
    probes: Annotated[
        int, Field(Integer(1, 100, _EXAMPLE), "Executions that run while it is half-open; it closes when all succeed.")
    ] = 1
    key: Annotated[str | None, Field(Key(), "A template: each value has a circuit of its own.")] = None


CIRCUIT = Object(
    Circuit, _EXAMPLE, what="A circuit", short=((str, "failures"), (bool, "")), main="failures", shows_all=True
)


class CircuitStatus(Struct, frozen=True, kw_only=True):
    """The current state of one circuit. `era` grows with every change; counts of an earlier era are ignored."""

    job: UUID
    key: str = ""
    state: CircuitState = "closed"
    era: int = 0
    since: Instant = 0
    until: Instant | None = None  # when probes of an open circuit start; None: when a user changes it
    forced: bool = False  # set by a user: counted attempts do not change it
    cause: str = ""
    by: str = NO_USER
    probes: tuple[UUID, ...] = ()  # executions that may run while it is half-open

    @property
    def blocks_starts(self) -> bool:
        """Return whether the circuit keeps executions from starting."""
        return self.state != "closed"


class AttemptCounts(Struct, frozen=True):
    """The numbers of attempts that succeeded and failed."""

    ok: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.ok + self.failed

    @property
    def percent(self) -> float:
        return 100 * self.failed / self.total if self.total else 0.0


class ParcelAttempts(Struct, frozen=True):
    """The numbers of attempts of a parcel's items that succeeded and failed."""

    parcel: UUID
    job: UUID
    ok: int
    failed: int


class CircuitChange(Struct, frozen=True):
    """The new state of a circuit, and the reason."""

    state: CircuitState
    cause: str
    until: Instant | None = None


def decide_change(circuit: Circuit, status: CircuitStatus, counts: AttemptCounts, now: Instant) -> CircuitChange | None:
    """Decide whether a circuit changes, by the attempts counted in its window since its last change."""
    if status.forced or status.state == "open":
        return None
    if status.state == "half-open":
        if counts.failed:
            return CircuitChange("open", "A probe failed.", now + circuit.open_for)
        if counts.ok >= circuit.probes:
            return CircuitChange("closed", f"{_probes(circuit.probes)} succeeded.")
        return None
    if counts.total < circuit.minimum or counts.percent < circuit.failures:
        return None
    cause = f"{counts.failed} of {counts.total} attempts failed within {format_duration(circuit.window)}."
    return CircuitChange("open", cause, now + circuit.open_for)


def _probes(count: int) -> str:
    return "A probe" if count == 1 else f"{count} probes"


def is_due(status: CircuitStatus, now: Instant) -> bool:
    """Return whether it is time to probe an open circuit."""
    return status.state == "open" and status.until is not None and status.until <= now


def is_left_over(circuit: Circuit | None, status: CircuitStatus) -> bool:
    """Return whether a circuit belongs to earlier settings of its job; `circuit` has the present ones, if any.

    A job with a key has a circuit of the empty key, too: for executions that fill in no key.
    """
    return circuit is None or (circuit.key is None and bool(status.key))


def bucket_of(circuit: Circuit, now: Instant) -> Instant:
    """Return the start of the part of the window in which an attempt is counted now."""
    width = max(SECOND, circuit.window // BUCKETS)
    return now - now % width


def gate_of(job: UUID, key: str) -> str:
    """Return the name of the gate at which executions wait for a circuit."""
    return f"circuit:{job}:{key}"


def read_gate(gate: str) -> tuple[UUID, str]:
    """Return the job and the key that a circuit's gate names."""
    _, job, key = gate.split(":", 2)
    return UUID(job), key


def why_blocked(status: CircuitStatus, job: str) -> str:
    """Explain to users why executions wait for a circuit."""
    of = f' for "{status.key}"' if status.key else ""
    by = " by hand" if status.forced else ""
    state = "open" if status.state == "open" else "half-open (a few executions try whether it works again)"
    until = f" until {format_instant(status.until)}" if status.until is not None else ""
    return f'The circuit of "{job}"{of} is {state}{by}{until}: {status.cause or "no reason was given."}'


def delay_note(status: CircuitStatus) -> str:
    """Return the ledger's note on a fire whose execution waits for a circuit."""
    until = f" until {format_instant(status.until)}" if status.until is not None else ""
    return f"delayed: its circuit is {status.state}{until}"
