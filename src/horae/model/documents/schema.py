"""Values against JSON schemas: the only way to check one, bounded by what the check costs.

The validator is native code that keeps the event loop while it works. So a schema is measured when it is compiled, a
value before it is checked, and what would take too long is refused instead.
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
    Place,
    places_of,
    text_units,
    units_of,
    within_unique,
)
from horae.model.executions.deduplication import start_batch

MOST_TOLD = 500  # characters of what is wrong with a value
MOST_KEPT = 500  # places of a schema in memory
SMALL = 64  # bytes of JSON that are not looked at to tell how many values are in them
MOST_TOGETHER = 40 * MOST_UNITS  # of all checks of one transaction
_BACKTRACKS, _PATTERN_BYTES, _CACHE_BYTES = 10_000, 32_000, 1_000_000


class Problem(msgspec.Struct, frozen=True):
    """The first thing that is wrong with a value, and where."""

    path: list[str]
    message: str


class Validator:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Compile a schema. Raises Costly when it is too much, and ValueError when it is none."""
        import jsonschema_rs

        places = places_of(schema)
        self._schema = schema
        self._places = places if len(places) <= MOST_KEPT else None  # the places of a large schema are found again
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
        """Whether a value fits that takes at most so many units. Raises Costly when it is too large to find out."""
        if most > MOST_UNITS and self._exactly(value) > MOST_UNITS:
            remedy = "Give less, or a reference to it; or say less in the schema about what is large."
            raise Costly("It takes too much work to check this value against its schema.", remedy, field="params")
        try:
            return bool(self._compiled.is_valid(value))
        except ValueError:
            raise _too_deep() from None

    def problem(self, value: Any, most: int | None = None) -> Problem | None:
        """What is wrong with a value, if something is. Raises Costly when it is too large to find out."""
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
        """The most that it takes to check a value, by a quick look at its JSON."""
        size = len(encoded)
        nodes = size if size < SMALL else 1 + encoded.count(b",") + encoded.count(b"[") + encoded.count(b"{")
        unique = encoded.count(b"[") if self._unique is None else self._unique
        most = (self._units + UNIQUE_UNITS * unique) * nodes + text_units(size, self._patterns, self._squares)
        return most if most <= MOST_UNITS else min(most, self._exactly(msgspec.json.decode(encoded)))

    def _exactly(self, value: Any) -> int:
        """How many units it takes to check a value, or more than MOST_UNITS."""
        places: list[Place] = self._places or places_of(self._schema)
        return units_of(places, value, MOST_UNITS)


class Spent:
    """What the checks of one piece of work take together."""

    def __init__(self, most: int = MOST_TOGETHER) -> None:
        self.units, self._most = 0, most

    def take(self, units: int) -> None:
        """Add one check. Raises Costly when all of them take too much."""
        self.units += units
        if self.units > self._most:
            remedy = "Give fewer or smaller items at once, or say less in the schema."
            raise Costly("It takes too much work to check all these params against their schema.", remedy)


def _too_deep() -> Costly:
    return Costly("These params are nested too deep for their schema.", "Nest them less.", field="params")


def shortened(message: str) -> str:
    """A message of the validator, which repeats values whole."""
    return message if len(message) <= MOST_TOLD else f"{message[: MOST_TOLD // 2]} ... {message[-MOST_TOLD // 2 :]}"


def validator_of(schema: bytes) -> Validator:
    """What checks values against a schema, given as JSON; compiled once. Raises Costly, and ValueError."""
    found = _compiled(schema)
    if isinstance(found, Costly):
        raise Costly(found.detail, found.remedy, **found.fields)
    return found


@lru_cache(maxsize=1024)
def _compiled(schema: bytes) -> Validator | Costly:
    """A schema that was stored before it was refused is measured once, too."""
    try:
        return Validator(msgspec.json.decode(schema))
    except Costly as error:
        return error


def check_schema(schema: dict[str, Any], field: str) -> Validator:
    """Compile a schema of a definition. Raises BadInput when it is none, or too much."""
    try:
        return validator_of(msgspec.json.encode(schema))
    except Costly as error:
        error.fields["field"] = field
        raise
    except ValueError as error:
        reason = shortened(str(error).splitlines()[0])
        raise BadInput(f"{field} is not a JSON schema: {reason}.", "See json-schema.org.", field=field) from None


class Fit:
    """The schema of a job, with the params that lie beneath those of each execution."""

    def __init__(self, spec: Spec) -> None:
        self._given = spec.params
        self._validator = None if spec.schema is None else validator_of(msgspec.json.encode(spec.schema))
        self._base = self._validator.units(msgspec.json.encode(spec.params)) if self._validator and spec.params else 0

    def units(self, item: bytes) -> int:
        """The most that it takes to check params."""
        return 0 if self._validator is None else self._base + self._validator.units(item)

    def fits(self, params: dict[str, Any], most: int) -> bool:
        """Whether params fit. Raises Costly."""
        return self._validator is None or self._validator.fits(self._whole(params), most)

    def problem(self, item: bytes, units: int | None = None) -> Problem | None:
        """What is wrong with params, which take so many units at most. Raises Costly."""
        if self._validator is None:
            return None
        return self._validator.problem(
            self._whole(msgspec.json.decode(item) or {}), self.units(item) if units is None else units
        )

    def _whole(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**self._given, **params} if self._given else params


def check_fits(item: bytes, spec: Spec, field: str) -> None:
    """Refuse what would be given to an execution when it does not fit the job's schema."""
    checker_of(spec, field)(item)


def checker_of(spec: Spec, field: str) -> Callable[[bytes], None]:
    """What refuses params that do not fit a job's schema, for many of them."""
    if spec.schema is None:
        return lambda item: None
    fit, spent = Fit(spec), Spent()

    def check(item: bytes) -> None:
        given = item if spec.batch is None else start_batch(item)
        units = fit.units(given)
        spent.take(units)
        problem = fit.problem(given, units)
        if problem is not None:
            where = ".".join([field, *problem.path])
            raise BadInput(f"{where}: {problem.message}.", "See the job's `schema`; give it `params`.", field=where)

    return check


def _reads(type: Any) -> Callable[[str], bool]:
    """Whether a text is one of this type by the rules that functions' parameters are read with."""

    def read(text: str) -> bool:
        try:
            msgspec.convert(text, type)
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
