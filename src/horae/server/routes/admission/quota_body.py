"""The body that sets a namespace's quota."""

from typing import Annotated, Literal

from msgspec import Meta

from horae.server.reading.bodies import Body


class QuotaBody(Body, frozen=True, kw_only=True):
    """What a namespace may have and use; what is left out, or null, is without a bound."""

    queued: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    running: Annotated[int, Meta(ge=1, le=10**15)] | None = None
    executions_per_day: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    worker_seconds_per_day: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    stored_bytes_per_day: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    submissions_per_second: Annotated[float, Meta(ge=0.01, le=1_000_000)] | None = None
    over: Annotated[Literal["refuse", "wait"], Meta(description="What becomes of what goes over it.")] | None = None
    starts_per_second: Annotated[float, Meta(ge=0.01, le=1_000_000)] | None = None
