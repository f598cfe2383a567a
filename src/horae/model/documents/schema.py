"""Validation of values against JSON schemas, with a bounded cost; all validation goes through this module.

The validator is native code that blocks the event loop while it runs. So the cost of a schema is computed when it is
compiled, and the cost of a check before the check. A schema or a check that is too expensive is refused.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from horae.errors import BadInput, Costly
from horae.model.definitions.job import Spec
from horae.model.documents.schema_cost import (
    MOST_UNITS,
    UNIQUE_UNITS,
    SchemaPlace,
    places_of,
    text_units,
    units_of,
    within_unique,
)
from horae.model.executions.deduplication import start_batch

MOST_MESSAGE = 500  # characters of a validation error
MOST_KEPT = 500  # places of a schema; if it has more, they are not kept in memory
SMALL = 64  # bytes of JSON; the length of shorter JSON serves as an upper bound of the number of its values
MOST_TOGETHER = 40 * MOST_UNITS  # units for all checks of one transaction
_BACKTRACKS, _PATTERN_BYTES, _CACHE_BYTES = 10_000, 32_000, 1_000_000


class Problem(msgspec.Struct, frozen=True):
    """The first validation error of a value, and its path."""

    path: list[str]
    message: str


class Validator:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Compile a schema. Raises Costly if it is too expensive, and ValueError if it is not a schema."""
        import jsonschema_rs

        places = places_of(schema)
        self._schema = schema
        # The places of a large schema are computed again when needed.
        self._places = places if len(places) <= MOST_KEPT else None
        self._units = max(place.units + place.each for place in places) + 1
        self._units += max((places[place.names].units + 1 for place in places if place.names is not None), default=0)
        self._patterns = max(place.patterns + place.name_patterns for place in places)
        self._patterns += max((places[place.names].patterns for place in places if place.names is not None), default=0)
        self._squares = max(place.squares + place.name_squares for place in places)
        self._squares += max((places[place.names].squares for place in places if place.names is not None), default=0)
        self._unique = within_unique(places)
        options = jsonschema_rs.FancyRegexOptions(
            backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES, dfa_size_limit=_CACHE_BYTES
        )
        self._compiled = jsonschema_rs.validator_for(
            schema, validate_formats=True, formats=_FORMATS, pattern_options=options
        )
        self._wrong = jsonschema_rs.ValidationError

    def fits(self, value: Any, most: int) -> bool:
        """Return whether a value fits the schema; `most` is an upper bound of the units to check it.

        Raises Costly if the check is too expensive.
        """
        if most > MOST_UNITS and self._exactly(value) > MOST_UNITS:
            remedy = "Send a smaller value or a reference, or simplify the schema for large values."
            raise Costly("It takes too much work to check this value against its schema.", remedy, field="params")
        try:
            return bool(self._compiled.is_valid(value))
        except ValueError:
            raise _too_deep() from None

    def problem(self, value: Any, most: int | None = None) -> Problem | None:
        """Return the first validation error of a value, or None. Raises Costly if the check is too expensive."""
        if self.fits(value, self.units(msgspec.json.encode(value)) if most is None else most):
            return None
        try:
            self._compiled.validate(value)
        except self._wrong as error:
            return Problem([str(step) for step in error.instance_path], shortened(error.message))
        except ValueError:
            raise _too_deep() from None
        return None

    def units(self, encoded: bytes) -> int:
        """Return an upper bound of the units to check a value, computed cheaply from its JSON."""
        size = len(encoded)
        nodes = size if size < SMALL else 1 + encoded.count(b",") + encoded.count(b"[") + encoded.count(b"{")
        unique = encoded.count(b"[") if self._unique is None else self._unique
        most = (self._units + UNIQUE_UNITS * unique) * nodes + text_units(size, self._patterns, self._squares)
        return most if most <= MOST_UNITS else min(most, self._exactly(msgspec.json.decode(encoded)))

    def _exactly(self, value: Any) -> int:
        """Compute the units to check a value, or a number above MOST_UNITS."""
        places: list[SchemaPlace] = self._places or places_of(self._schema)
        return units_of(places, value, MOST_UNITS)


class CheckBudget:
    """The budget of units for all checks of one request or transaction."""

    def __init__(self, most: int = MOST_TOGETHER) -> None:
        self.units, self._most = 0, most

    def take(self, units: int) -> None:
        """Add the cost of one check. Raises Costly when the total is too large."""
        self.units += units
        if self.units > self._most:
            remedy = "Give fewer or smaller items at once, or simplify the schema."
            raise Costly("It takes too much work to check all these params against their schema.", remedy)


def _too_deep() -> Costly:
    return Costly("These params are nested too deeply for their schema.", "Nest them less.", field="params")


def shortened(message: str) -> str:
    """Shorten an error message of the validator, which may quote whole values."""
    return (
        message
        if len(message) <= MOST_MESSAGE
        else f"{message[: MOST_MESSAGE // 2]} ... {message[-MOST_MESSAGE // 2 :]}"
    )


def validator_of(schema: bytes) -> Validator:
    """Return the validator of a schema given as JSON; it is compiled once. Raises Costly and ValueError."""
    found = _compiled(schema)
    if isinstance(found, Costly):
        raise Costly(found.detail, found.remedy, **found.fields)
    return found


@lru_cache(maxsize=1024)
def _compiled(schema: bytes) -> Validator | Costly:
    """Compile a schema, or return the refusal, so that the cost of a refused schema is computed only once, too."""
    try:
        return Validator(msgspec.json.decode(schema))
    except Costly as error:
        return error


def check_schema(schema: dict[str, Any], field: str) -> Validator:
    """Compile a schema from a definition. Raises BadInput if it is invalid or too expensive."""
    try:
        return validator_of(msgspec.json.encode(schema))
    except Costly as error:
        error.fields["field"] = field
        raise
    except ValueError as error:
        reason = shortened(str(error).splitlines()[0])
        raise BadInput(f"{field} is not a JSON schema: {reason}.", "See json-schema.org.", field=field) from None


class ParamsCheck:
    """Checks the params of executions, merged over the default params of their job, against the job's schema."""

    def __init__(self, spec: Spec) -> None:
        self._given = spec.params
        self._validator = None if spec.schema is None else validator_of(msgspec.json.encode(spec.schema))
        self._base = self._validator.units(msgspec.json.encode(spec.params)) if self._validator and spec.params else 0

    def units(self, item: bytes) -> int:
        """Return an upper bound of the units to check params."""
        return 0 if self._validator is None else self._base + self._validator.units(item)

    def fits(self, params: dict[str, Any], most: int) -> bool:
        """Return whether params fit. Raises Costly."""
        return self._validator is None or self._validator.fits(self._whole(params), most)

    def problem(self, item: bytes, units: int | None = None) -> Problem | None:
        """Return the first validation error of params, whose cost is at most `units`. Raises Costly."""
        if self._validator is None:
            return None
        return self._validator.problem(
            self._whole(msgspec.json.decode(item) or {}), self.units(item) if units is None else units
        )

    def _whole(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**self._given, **params} if self._given else params


def check_fits(item: bytes, spec: Spec, field: str) -> None:
    """Refuse params that do not fit the job's schema."""
    checker_of(spec, field)(item)


def checker_of(spec: Spec, field: str) -> Callable[[bytes], None]:
    """Return a function that refuses params that do not fit a job's schema, with one budget for all its calls."""
    if spec.schema is None:
        return lambda item: None
    fit, spent = ParamsCheck(spec), CheckBudget()

    def check(item: bytes) -> None:
        given = item if spec.batch is None else start_batch(item)
        units = fit.units(given)
        spent.take(units)
        problem = fit.problem(given, units)
        if problem is not None:
            where = ".".join([field, *problem.path])
            raise BadInput(f"{where}: {problem.message}.", "Give params that fit the job's `schema`.", field=where)

    return check


def _reads(kind: Any) -> Callable[[str], bool]:
    """Return a function that tests whether a string can be converted to a type, as for parameters of job functions."""

    def read(text: str) -> bool:
        try:
            msgspec.convert(text, kind)
        except msgspec.ValidationError:
            return False
        return True

    return read


_FORMATS = {
    "date": _reads(date),
    "time": _reads(time),
    "date-time": _reads(datetime),
    "duration": _reads(timedelta),
    "uuid": _reads(UUID),
}
