"""Signals, and the steps that wait for them: which signal a step receives, and the step's result.

A step waits for signals of one name, perhaps with a filter. It receives the oldest such signal that passes the filter,
whether the signal arrives before or after the step begins to wait. If several steps wait for a signal, the step that
has waited longest receives it. So each signal is delivered once, and an open wait means that no matching signal has
arrived.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.view import View
from horae.model.expressions.meter import ITEM_STEPS, MOST_STEPS, Meter, shared_budget
from horae.model.triggers.events.filters import Filter, compile_filter

SIGNAL_NAMES = frozenset({"signal"})
MOST_KEPT = 1000  # undelivered signals of one execution
TIMED_OUT = b'{"timedOut":true}'


class SignalView(View, frozen=True, kw_only=True):
    """An accepted signal: `delivered` to a waiting step, or stored for a later one."""

    execution_id: UUID
    name: str
    delivered: bool


class Signal(Struct, frozen=True, kw_only=True):
    """A message to an execution: a name, and JSON."""

    id: UUID
    name: str
    payload: bytes = b"null"


class WaitingStep(Struct, frozen=True, kw_only=True):
    """A step that waits for a signal."""

    step: str
    filter: str | None = None
    deadline: Instant | None = None


def compile_signal_filter(source: str) -> Filter:
    """Compile the filter of a wait. Raises BadInput."""
    return compile_filter(source, names=SIGNAL_NAMES)


def first_wait_for(waits: Sequence[WaitingStep], signal: Signal) -> WaitingStep | None:
    """Return the wait that receives a signal. `waits` are the waits for its name, oldest first."""
    with shared_budget(Meter(MOST_STEPS + ITEM_STEPS * len(waits))):
        return next((wait for wait in waits if _passes(wait.filter, signal)), None)


def first_signal_for(source: str | None, signals: Sequence[Signal]) -> Signal | None:
    """Return the signal that a wait with this filter receives. `signals` are those that have arrived, oldest first."""
    with shared_budget(Meter(MOST_STEPS + ITEM_STEPS * len(signals))):
        return next((signal for signal in signals if _passes(source, signal)), None)


def signal_result(signal: Signal) -> bytes:
    """Return the result of the step that received a signal."""
    return b'{"payload":' + signal.payload + b"}"


def _passes(source: str | None, signal: Signal) -> bool:
    """Return whether a signal passes a filter; a filter that raises an error, as for a wrong type, refuses it."""
    if source is None:
        return True
    told: dict[str, Any] = {"name": signal.name, "payload": msgspec.json.decode(signal.payload)}
    return compile_signal_filter(source).refusal({"signal": told}) is None
