"""Conversion of Python values to JSON.

All types that msgspec supports (dataclasses, dates, UUIDs, enums, sets, ...) and pydantic models are converted.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.base.duration import format_duration
from horae.model.executions.job_exceptions import Span, micros_of


def _more(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} {str(value)[:60]!r} cannot be converted to JSON")
    return dump(mode="json")


ENCODER = msgspec.json.Encoder(enc_hook=_more)


def encode(value: Any, what: str = "These parameters") -> bytes:
    """Encode a value as JSON. Raises BadInput if this is impossible; `what` names the value in the message."""
    try:
        return ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        remedy = "Use JSON values, dataclasses, dates, UUIDs, enums or pydantic models."
        raise BadInput(f"{what} cannot be sent: {error}.", remedy, field="params") from error


def span(value: Span | None) -> str | None:
    """Return a duration in the API's form, a text such as "5m"."""
    return None if value is None else format_duration(micros_of(value))


def instant(value: datetime | str | None) -> str | None:
    """Return an instant in the API's form; a datetime must have a time zone."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadInput(f"{value} has no time zone.", "Use datetime.now(UTC) or give it a tzinfo.", field="at")
        return value.isoformat()
    return value


def given(**fields: Any) -> dict[str, Any]:
    """Return a request body with these fields, named in camelCase, without fields that are None."""
    return {camel(name): value for name, value in fields.items() if value is not None}


def definition(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a definition in the API's form. None stays, because it resets a field to its default."""
    return {camel(n): span(v) if isinstance(v, timedelta) else v for n, v in fields.items()}


def document(whole: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition `whole` with some of its fields replaced by those of `fields`."""
    return {**(whole or {}), **definition(fields)}


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
