"""Packing of many small byte strings into two large ones: a blob, and the position in it at which each string ends.

The items of a parcel and the results of a finished slice are stored in this form, byte for byte, and not as an array of
texts.
"""

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain
from operator import sub

from msgspec import Struct


class Packed(Struct, frozen=True, gc=False):
    """Byte strings that are concatenated in `blob`.

    `ends` has the position at which each string ends, as little-endian 32-bit numbers; it is empty for a single string.
    """

    ends: bytes
    blob: bytes

    def __len__(self) -> int:
        return len(self.ends) // 4 or 1

    @property
    def widest(self) -> int:
        """Return the length of the longest string."""
        if not self.ends:
            return len(self.blob)
        ends = _array(self.ends)
        widest: int = max(map(sub, ends, chain((0,), ends)))
        return widest

    def one(self, index: int) -> bytes:
        """Return the string at an index without decoding the others."""
        if not self.ends:
            return self.blob
        start, size = span_of(self.ends, len(self.blob), index)
        return self.blob[start : start + size]

    def part(self, lo: int, hi: int) -> list[bytes]:
        """Return the strings at the indexes `lo` to `hi - 1`."""
        if not self.ends:
            return [self.blob][lo:hi]
        ends = _array(self.ends)
        start = ends[lo - 1] if lo else 0
        parts = []
        for end in ends[lo:hi]:
            parts.append(self.blob[start:end])
            start = end
        return parts


def span_of(ends: bytes, size: int, index: int) -> tuple[int, int]:
    """Return the start and the length of the string at an index, in a blob of `size` bytes."""
    if not ends:
        return 0, size
    at = 4 * index
    start = int.from_bytes(ends[at - 4 : at], "little") if index else 0
    return start, int.from_bytes(ends[at : at + 4], "little") - start


def pack(parts: Sequence[bytes]) -> Packed:
    """Pack byte strings or other buffers."""
    if len(parts) == 1:
        return Packed(b"", bytes(parts[0]))
    ends = array("I", accumulate(map(len, parts)))
    if sys.byteorder == "big":
        ends.byteswap()
    return Packed(ends.tobytes(), b"".join(parts))


def _array(ends: bytes) -> "array[int]":
    values = array("I")
    values.frombytes(ends)
    if sys.byteorder == "big":
        values.byteswap()
    return values
