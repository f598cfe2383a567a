"""Specs of jobs as the moves read them, each once."""

from functools import lru_cache

import msgspec

from horae.model.limits import KeyLimit


class _Limits(msgspec.Struct):
    limits: tuple[KeyLimit, ...] = ()


_decode = msgspec.json.Decoder(_Limits).decode


@lru_cache(maxsize=1024)
def read_limits(spec: str) -> tuple[KeyLimit, ...]:
    """The limits by key in a job's spec."""
    return _decode(spec).limits
