"""What bodies of requests are made of. Those of one noun stand beside its routes, large ones in `_body` modules."""

from typing import Annotated

from msgspec import Meta, Raw, Struct

Duration = Annotated[
    str | int | float,
    Meta(description='"5m", "1h30m", ISO 8601 or seconds.', extra_json_schema={"examples": ["5m", "PT1H", 90]}),
]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Priority = Annotated[int, Meta(ge=0, le=9, description="0 (least urgent) to 9 (most urgent); 4 by default.")]
When = Annotated[
    str,
    Meta(description="RFC 3339 with an offset.", extra_json_schema={"format": "date-time"}),
]
Tags = Annotated[list[str] | dict[str, str], Meta(description='["nightly"] or {"team": "data"}.')]
Params = Annotated[Raw, Meta(description="An object.", extra_json_schema={"type": "object"})]
Key = Annotated[str, Meta(min_length=1, max_length=256)]


class Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The body of a request; a field it does not know is refused."""


class Reason(Body, frozen=True, kw_only=True):
    """Why."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
