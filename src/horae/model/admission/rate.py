"""Rates: a number of starts in a span of time, spread evenly, with a bounded burst (generic cell rate algorithm).

The only state of a rate is its pace: the instant at which the next start would be exactly on schedule. Each start moves
the pace forward by one interval. The further the pace is in the future, the less of the burst is left. In any span of
time, at most `burst` more executions start than the rate allows.
"""

import re
from typing import Any

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.fields.kinds import Custom, as_given
from horae.model.fields.table import Document, Group
from horae.model.fields.values import a_text, an_int, kind_of

UNUSED: Instant = 0  # the pace of an unused rate
MOST_STARTS = 1_000_000
_RATE = re.compile(r"(\d{1,9})\s*(?:/|per)\s*(.+)")
_RATES = 'Write a number of starts in a span: "100/1m", "5/s".'


class Rate(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rate of `count` starts in each span of length `per`; after a pause, `burst` starts may come at once."""

    count: int
    per: Micros
    burst: int = 1

    @property
    def interval(self) -> Micros:
        """Return the time between two starts, rounded up, so that the rate is never exceeded."""
        return -(-self.per // self.count)

    def room(self, pace: Instant, now: Instant) -> int:
        """Return how many executions may start now."""
        ahead = max(pace, now) - now
        return max(0, self.burst - -(-ahead // self.interval))

    def after(self, pace: Instant, starts: int, now: Instant) -> Instant:
        """Return the pace after this many starts."""
        return max(pace, now) + starts * self.interval

    def opens_at(self, pace: Instant, more: int = 1) -> Instant:
        """Return when `more` executions may start, if no other execution starts before."""
        return pace - (self.burst - more) * self.interval

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.per)}"


def parse_rate(value: Any, field: str, burst: int = 1) -> Rate:
    """Read a rate such as "100/1m"."""
    if not isinstance(value, str):
        raise BadInput(f"{field} is {kind_of(value)}, not a text.", _RATES, field=field)
    found = _RATE.fullmatch(a_text(value, field, most=1024, least=1).strip())
    if found is None:
        raise BadInput(f"{value!r} is not a rate.", _RATES, field=field)
    count, span = int(found[1]), found[2].strip()
    try:
        per = parse_duration(span if span[:1].isdigit() or span.startswith("P") else f"1{span}", field=field)
    except BadInput:
        raise BadInput(f"{value!r} is not a rate.", _RATES, field=field) from None
    if not 1 <= count <= MOST_STARTS or not SECOND // 1000 <= per <= 400 * DAY:
        remedy = f"Write 1 to {MOST_STARTS} starts in a span from 1 millisecond to 400 days."
        raise BadInput(f"{value!r} is out of range.", remedy, field=field)
    return Rate(count, per, burst)


def remove_lone_burst(merged: dict[str, Any], patch: Document) -> None:
    """Remove the burst from a patched definition if the patch has removed its rate."""
    if merged.get("rate") is None and patch.get("burst") is None:
        merged.pop("burst", None)


def _read_rate(given: Document, prefix: str) -> dict[str, Any]:
    rate, burst = given.get("rate"), given.get("burst")
    if rate is None:
        remedy = "Give a rate, or remove the burst."
        raise BadInput("burst is given without a rate.", remedy, field=f"{prefix}burst")
    most = 1 if burst is None else an_int(burst, f"{prefix}burst", 1, MOST_STARTS)
    return {"rate": parse_rate(rate, f"{prefix}rate", most)}


def _write_rate(limit: Any) -> dict[str, Any]:
    rate: Rate | None = limit.rate
    return {
        "rate": None if rate is None else str(rate),
        "burst": None if rate is None or rate.burst == 1 else rate.burst,
    }


RATE = Group(_read_rate, _write_rate)  # the fields `rate` and `burst` make one Rate
RATE_TEXT = Custom(as_given, str, "str")
