"""Traces: where an execution stands in one, as W3C's trace context writes it, and the ids of what happens to it.

The ids of spans follow from what they are about, so nobody has to hand them on: a command's parent is the attempt that
runs it, whoever tells of that attempt, and what is told twice is the same span.
"""

import re
from hashlib import blake2b
from uuid import UUID

from msgspec import Struct

_HEADER = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST = 256  # characters of a header; a later version may have more than ours
_MEMBER = re.compile(
    r"([a-z0-9][a-z0-9_*/@-]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
_MOST_MEMBERS, _LONG_MEMBER, _MOST_STATE = 32, 128, 512  # of a `tracestate`: members, and characters
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceHeaders(Struct, frozen=True):
    """The two headers of W3C's trace context, as somebody gave them."""

    parent: str | None = None
    state: str | None = None


UNTRACED = TraceHeaders()


class TraceContext(Struct, frozen=True):
    """A span of a trace, as those know it that follow from it."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16
    sampled: bool = True
    state: str | None = None  # what vendors say of the trace, handed on as it is

    @property
    def header(self) -> str:
        """As `traceparent` carries it."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def read_trace(header: str | None, state: str | None = None) -> TraceContext | None:
    """What a `traceparent` says; None when there is none, or none that can be read: then a new trace begins.

    A `state` that was checked comes along.
    """
    if not header or len(header) > _LONGEST:
        return None
    found = _HEADER.fullmatch(header.strip())
    if found is None or (header.startswith("00") and found[4]):
        return None
    if found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1), state)


def checked_trace(header: str | None) -> str | None:
    """A `traceparent` as it is kept and handed on; what cannot be read is dropped."""
    context = read_trace(header)
    return None if context is None else context.header


def checked_state(state: str | None) -> str | None:
    """A `tracestate` as it is kept and handed on; what cannot be read is dropped as a whole.

    Of one that is too long, the long members go first, then the last ones: those are the oldest.
    """
    members = [member.strip() for member in (state or "").split(",") if member.strip()]
    read = [_MEMBER.fullmatch(member) for member in members]
    keys = {found[1] for found in read if found is not None}
    if not members or len(keys) != len(members) or len(members) > _MOST_MEMBERS:
        return None
    if len(",".join(members)) > _MOST_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(members)) > _MOST_STATE:
        members.pop()
    return ",".join(members) or None


def trace_id_of(header: str | None) -> str | None:
    """The trace that a `traceparent` belongs to."""
    context = read_trace(header)
    return None if context is None else context.trace_id


def root_of(id: UUID) -> TraceContext:
    """The beginning of a trace that nobody else began: of an execution, or of a request."""
    return TraceContext(_digest(id, "trace", 16), _digest(id, "root", 8))


def span_of(what: str, execution: UUID, attempt: int) -> str:
    """The id of something that happens to an attempt of an execution."""
    return _digest(execution, f"{what}:{attempt}", 8)


def _digest(id: UUID, what: str, size: int) -> str:
    return blake2b(id.bytes, digest_size=size, person=what.encode()[:16]).hexdigest()
