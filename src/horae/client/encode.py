"""JSON of Python values.

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
        raise TypeError(f"{type(value).__name__} {str(value)[:60]!r} has no form in JSON")
    return dump(mode="json")


ENCODER = msgspec.json.Encoder(enc_hook=_more)


def encode(value: Any, what: str = "These parameters") -> bytes:
    """Return a value as JSON; a value without a JSON form is refused before any request is sent."""
    try:
        return ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        remedy = "Use what JSON can hold, dataclasses, dates, UUIDs, enums or pydantic models."
        raise BadInput(f"{what} cannot be sent: {error}.", remedy, field="params") from error


def span(value: Span | None) -> str | None:
    """Return a duration in the API's form."""
    return None if value is None else format_duration(micros_of(value))


def instant(value: datetime | str | None) -> str | None:
    """Return an instant in the API's form; a datetime must have a time zone."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadInput(f"{value} does not say its zone.", "Use datetime.now(UTC) or give it a tzinfo.", field="at")
        return value.isoformat()
    return value


def given(**fields: Any) -> dict[str, Any]:
    """Return a body of the given fields, in camelCase, without None."""
    return {camel(name): value for name, value in fields.items() if value is not None}


def definition(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's definition in the API's form; None removes a field."""
    return {camel(n): span(v) if isinstance(v, timedelta) else v for n, v in fields.items()}


def document(whole: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole definition with some of its fields replaced by keywords."""
    return {**(whole or {}), **definition(fields)}


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
