"""The clock changes recorded in time zone files, read independently of the code under test."""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib import resources
from io import BytesIO
from itertools import pairwise
from zoneinfo import ZoneInfo

# Half-hour shifts, odd minutes, gaps over midnight, a skipped date, permanent changes, offsets with seconds, Ramadan.
PECULIAR = (
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "America/Nuuk",
    "Pacific/Apia",
    "Africa/Monrovia",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/Havana",
    "America/New_York",
    "Europe/London",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Asia/Gaza",
    "Pacific/Kwajalein",
    "UTC",
)
YEAR_2038 = 2_145_916_800


def all_zones() -> list[str]:
    return (resources.files("tzdata") / "zones").read_text().split()


@cache
def changes(name: str) -> tuple[tuple[int, int, int], ...]:
    """Return (UTC second, offset before, offset after) of each change of offset, 1970 to 2037.

    The file lists them up to where its rule for the future begins; from there every day is checked.
    """
    return _changes(rules_of(name))


@cache
def _changes(raw: bytes) -> tuple[tuple[int, int, int], ...]:
    """Group zones by their rules, since many names share them."""
    listed, zone = list(_listed(raw)), ZoneInfo.from_file(BytesIO(raw))
    found = [(at, old, new) for (_, old), (at, new) in pairwise(listed) if old != new and 0 < at < YEAR_2038]
    return (*found, *_followed(zone, max(0, listed[-1][0])))


def rules_of(name: str) -> bytes:
    """Return the file that defines a zone."""
    return (resources.files("tzdata") / "zoneinfo" / name).read_bytes()


def _listed(raw: bytes) -> Iterator[tuple[int, int]]:
    """Return (UTC second, offset from then on); the first one is the offset before any change."""
    skip = 44 + _size(raw[:44], 4)
    head, body = raw[skip : skip + 44], raw[skip + 44 :]
    _, _, _, times, types, _ = struct.unpack(">6I", head[20:])
    at = struct.unpack(f">{times}q", body[: times * 8])
    kinds = body[times * 8 : times * 9]
    records = body[times * 9 : times * 9 + types * 6]
    offsets = [struct.unpack(">i", records[i * 6 : i * 6 + 4])[0] for i in range(types)]
    yield -(2**62), offsets[0]
    for second, kind in zip(at, kinds, strict=True):
        yield second, offsets[kind]


def _followed(zone: ZoneInfo, start: int) -> Iterator[tuple[int, int, int]]:
    def offset(second: int) -> int:
        return int(datetime.fromtimestamp(second, zone).utcoffset().total_seconds())

    shown = offset(start)
    for one, two in pairwise((*range(start, YEAR_2038, 86_400), YEAR_2038)):
        before, shown = shown, offset(two)
        if shown != before:
            yield bisect_left(range(two), True, lo=one, key=lambda at: offset(at) == shown), before, shown


def _size(head: bytes, width: int) -> int:
    isut, isstd, leaps, times, types, chars = struct.unpack(">6I", head[20:44])
    return times * width + times + types * 6 + chars + leaps * (width + 4) + isstd + isut


@cache
def first_offset(name: str) -> int:
    """Return the offset at the beginning of 1970."""
    return [offset for at, offset in _listed(rules_of(name)) if at <= 0][-1]
