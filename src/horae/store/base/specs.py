"""Stored specs (definitions) of jobs, parsed for scripts; parsed specs are cached."""

from functools import lru_cache

import msgspec

from horae.model.admission.limits import KeyLimit, with_own
from horae.model.admission.rate import Rate


class _Limits(msgspec.Struct):
    limits: tuple[KeyLimit, ...] = ()
    concurrency: int | None = None
    rate: Rate | None = None


_decode = msgspec.json.Decoder(_Limits).decode


@lru_cache(maxsize=1024)
def read_limits(spec: str) -> tuple[KeyLimit, ...]:
    """Return the limits in a job's spec, including those that its options `concurrency` and `rate` stand for."""
    decoded = _decode(spec)
    return with_own(decoded.limits, decoded.concurrency, decoded.rate)
