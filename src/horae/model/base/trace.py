"""Traces: the position of an execution in a trace, in W3C's trace context format, and the ids of its spans.

The id of a span is computed from the execution and the attempt that the span describes, so that processes need not send
each other ids. For example, the parent of a command's span is the span of its attempt, no matter which process reports
the attempt. A span that is reported twice has the same id.
"""

import re
from hashlib import blake2b
from uuid import UUID

from msgspec import Struct

_HEADER = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST = 256  # characters of a header; in later versions of the format, headers may be longer than today
_MEMBER = re.compile(
    r"([a-z0-9][a-z0-9_*/@-]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
# Of a `tracestate`: the most members, the characters above which a member is long, and the most characters.
_MOST_MEMBERS, _LONG_MEMBER, _MOST_STATE = 32, 128, 512
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceHeaders(Struct, frozen=True):
    """The two headers of W3C's trace context, unchecked."""

    parent: str | None = None
    state: str | None = None


UNTRACED = TraceHeaders()


class TraceContext(Struct, frozen=True):
    """A span of a trace, with the data that its child spans need."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16 hexadecimal digits
    sampled: bool = True
    state: str | None = None  # data of tracing vendors, passed on unchanged

    @property
    def header(self) -> str:
        """Return the `traceparent` header."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def read_trace(header: str | None, state: str | None = None) -> TraceContext | None:
    """Parse a `traceparent`. Return None when it is missing or invalid, so that the caller begins a new trace.

    `state` is a `tracestate` that `checked_state` has returned; it becomes part of the context.
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
    """Return a `traceparent` in normal form, or None when it is invalid."""
    context = read_trace(header)
    return None if context is None else context.header


def checked_state(state: str | None) -> str | None:
    """Return a `tracestate` in normal form, or None when it is invalid.

    When it is too long, its long members are dropped first, then members at its end, which are the oldest.
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
    """Return the id of the trace of a `traceparent`."""
    context = read_trace(header)
    return None if context is None else context.trace_id


def root_of(subject: UUID) -> TraceContext:
    """Return the root span of a new trace, for an execution or a request."""
    return TraceContext(_digest(subject, "trace", 16), _digest(subject, "root", 8))


def span_of(what: str, execution: UUID, attempt: int) -> str:
    """Return the id of the span that is named `what` and describes a part of an execution's attempt."""
    return _digest(execution, f"{what}:{attempt}", 8)


def _digest(subject: UUID, what: str, size: int) -> str:
    return blake2b(subject.bytes, digest_size=size, person=what.encode()[:16]).hexdigest()
