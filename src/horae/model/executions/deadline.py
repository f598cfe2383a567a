"""Deadlines: until when an execution is wanted, as a span from when it is due."""

from horae.env import Instant, Micros

GRAIN = 10_000  # microseconds to which a deadline is rounded up: executions made together may travel together


def deadline_after(since: Instant, within: Micros | None) -> Instant | None:
    """Return the instant that lies `within` after another; None without a span."""
    return None if within is None else -(-(since + within) // GRAIN) * GRAIN
