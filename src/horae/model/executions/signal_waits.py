"""Signals, and what waits for them: which signal a wait takes, and what it makes of it.

A wait takes the oldest signal of its name that passes its filter, whether that came before or comes later; a signal is
taken by the wait that began first. So each is delivered once, and an open wait means that nothing has come for it.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.view import View
from horae.model.expressions.meter import ITEM_STEPS, MOST_STEPS, Meter, shared
from horae.model.triggers.events.filters import Filter, compile_filter

SIGNAL_NAMES = frozenset({"signal"})
MOST_KEPT = 1000  # signals of one execution that nothing waits for yet
TIMED_OUT = b'{"timedOut":true}'


class SignalView(View, frozen=True, kw_only=True):
    """A signal that was taken: `delivered` to a step that waited for it, or kept for one that will."""

    execution_id: UUID
    name: str
    delivered: bool


class Signal(Struct, frozen=True, kw_only=True):
    """Something that an execution is told: a name, and JSON."""

    id: UUID
    name: str
    payload: bytes = b"null"


class WaitingStep(Struct, frozen=True, kw_only=True):
    """A step that waits for a signal."""

    step: str
    filter: str | None = None
    deadline: Instant | None = None


def compile_signal_filter(filter: str) -> Filter:
    """Compile what a wait asks of signals, or refuse it with what is wrong."""
    return compile_filter(filter, names=SIGNAL_NAMES)


def first_wait_for(waits: Sequence[WaitingStep], signal: Signal) -> WaitingStep | None:
    """Who takes a signal, of those that wait for its name, the longest first."""
    with shared(Meter(MOST_STEPS + ITEM_STEPS * len(waits))):
        return next((wait for wait in waits if _passes(wait.filter, signal)), None)


def first_signal_for(filter: str | None, signals: Sequence[Signal]) -> Signal | None:
    """What a wait takes of the signals that have come, oldest first."""
    with shared(Meter(MOST_STEPS + ITEM_STEPS * len(signals))):
        return next((signal for signal in signals if _passes(filter, signal)), None)


def signal_result(signal: Signal) -> bytes:
    """The result of the step that took a signal."""
    return b'{"payload":' + signal.payload + b"}"


def _passes(filter: str | None, signal: Signal) -> bool:
    """What cannot be computed does not pass: a signal of another shape stays for who understands it."""
    if filter is None:
        return True
    told: dict[str, Any] = {"name": signal.name, "payload": msgspec.json.decode(signal.payload)}
    return compile_signal_filter(filter).refusal({"signal": told}) is None
