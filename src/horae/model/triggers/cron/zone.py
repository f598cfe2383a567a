"""Time zones as spans of constant offset.

The rules come from the `tzdata` package and not from the machine, so all servers with the same version of it fire at
the same instants, and `tzdata_version()` identifies the rules behind a computed instant. All times here are whole
seconds: UTC seconds since the epoch, or wall seconds, which count the time that a wall clock shows.
"""

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module, resources
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from horae.errors import BadInput
from horae.model.fields.kinds import Text
from horae.model.fields.values import a_text

MOST_NAME = 120
BUCKET_BITS = 25  # spans are computed and cached by bucket: 2**25 seconds, a little more than a year
FIRST_BUCKET, LAST_BUCKET = -1_800, 6_600  # the range of `datetime`, years 55 to 8981

_MARGIN = 2 * 86_400  # more than the largest existing clock change
_STRIDE = 2 * 86_400  # less than the shortest time between two clock changes, about a week
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Span(NamedTuple):
    """UTC seconds from `start` to before `end` during which wall time is UTC plus `offset`.

    The clock has already shown wall times below `high` before this span. If `high < start + offset`, the clock jumped
    forward at `start` and skipped the wall times between these two. It shows wall times from `low` on again after this
    span.
    """

    start: int
    end: int
    offset: int
    high: int
    low: int


@lru_cache(maxsize=4096)
def spans(name: str, bucket: int) -> tuple[Span, ...]:
    """Return the spans of a zone that cover one bucket of UTC seconds, in order."""
    start, end = bucket << BUCKET_BITS, (bucket + 1) << BUCKET_BITS
    rough = _changes(load(name), start - _MARGIN, end + _MARGIN)
    return tuple(_cut(span, start, end) for span in _watermarks(rough) if span.start < end and span.end > start)


def _cut(span: Span, start: int, end: int) -> Span:
    """Return the part of a span inside a bucket; a gap belongs to the bucket in which it happens."""
    if span.start < start:
        span = span._replace(start=start, high=max(span.high, start + span.offset))
    return span._replace(end=min(span.end, end))


def _watermarks(rough: list[tuple[int, int, int]]) -> list[Span]:
    """Build a span from each (start, end, offset), with `high` and `low` from the spans before and after it."""
    highs, lows = [rough[0][0] + rough[0][2]], [rough[-1][1] + rough[-1][2]]
    for _, end, offset in rough[:-1]:
        highs.append(max(highs[-1], end + offset))
    for start, _, offset in reversed(rough[1:]):
        lows.append(min(lows[-1], start + offset))
    return [Span(*each, high, low) for each, high, low in zip(rough, highs, reversed(lows), strict=True)]


def _changes(zone: ZoneInfo, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return (start, end, offset) of each stretch of constant offset between two UTC seconds."""
    span_start, offset = start, _offset(zone, start)
    found = []
    for probe in range(start + _STRIDE, end + _STRIDE, _STRIDE):
        now = _offset(zone, probe)
        if now != offset:
            change = _first_unlike(zone, offset, probe - _STRIDE, probe)
            found.append((span_start, change, offset))
            span_start, offset = change, now
    found.append((span_start, end, offset))
    return [each for each in found if each[0] < end]


def _first_unlike(zone: ZoneInfo, offset: int, same: int, other: int) -> int:
    while other - same > 1:
        middle = (same + other) // 2
        if _offset(zone, middle) == offset:
            same = middle
        else:
            other = middle
    return other


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds


@cache
def load(name: str) -> ZoneInfo:
    """Load the zone with this IANA name. Refuse an unknown name and suggest the nearest known ones."""
    if name not in names():
        raise BadInput(f"There is no time zone named {name[:60]!r}.", _suggestion(name), field="timezone")
    with (resources.files("tzdata") / "zoneinfo" / name).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


def _read_zone(value: Any, at: str) -> str:
    zone = a_text(value, at, most=MOST_NAME, least=1)
    try:
        load(zone)
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=at) from None
    return zone


@cache
def names() -> frozenset[str]:
    """Return all IANA names of the installed rules."""
    return frozenset((resources.files("tzdata") / "zones").read_text().split())


def tzdata_version() -> str:
    """Return the version of the time zone rules, such as "2026a"."""
    return str(import_module("tzdata").IANA_VERSION)


def _suggestion(name: str) -> str:
    near = _nearest(name.strip()[:60])
    if not near:
        return 'Use an IANA name such as "Europe/Paris" or "UTC".'
    return "Did you mean " + " or ".join(f'"{each}"' for each in near) + "?"


def _nearest(name: str) -> list[str]:
    """Return up to three names that differ only in case, lack their region, or have a similar spelling."""
    folded = name.casefold().replace(" ", "_")
    known = {each.casefold(): each for each in sorted(names())}
    if folded in known:
        return [known[folded]]
    cities = [each for key, each in known.items() if key.rpartition("/")[2] == folded]
    return cities[:3] or [known[key] for key in get_close_matches(folded, known, n=3, cutoff=0.7)]


ZONE = Text(MOST_NAME, 1, _read_zone)
