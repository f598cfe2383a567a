"""Rates: so many starts in a span, spread evenly, with a bounded burst (GCRA).

All that is remembered of a rate is the instant at which a start would be exactly on pace. In any span at most
`burst` starts more than its pace take place.
"""

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.base.duration import format_duration

NEVER: Instant = 0  # the pace of a rate that nothing has used


class Rate(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`count` starts in a span of `per`; `burst` of them may come at once after a pause."""

    count: int
    per: Micros
    burst: int = 1

    @property
    def interval(self) -> Micros:
        """Between two starts on pace, rounded up: the rate is never exceeded."""
        return -(-self.per // self.count)

    def room(self, pace: Instant, now: Instant) -> int:
        """How many may start now."""
        ahead = max(pace, now) - now
        return max(0, self.burst - -(-ahead // self.interval))

    def after(self, pace: Instant, starts: int, now: Instant) -> Instant:
        """The pace after so many starts."""
        return max(pace, now) + starts * self.interval

    def opens_at(self, pace: Instant, more: int = 1) -> Instant:
        """When so many may start, if none does meanwhile."""
        return pace - (self.burst - more) * self.interval

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.per)}"
