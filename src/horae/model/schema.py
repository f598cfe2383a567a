"""Params against the schema of a job's signature."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from horae.errors import BadInput
from horae.model.job import Spec
from horae.model.meeting import batch_of


def validator_of(schema: dict[str, Any]) -> Any:
    """What checks values against a schema. Raises ValueError when it is none."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, validate_formats=True, formats=_FORMATS)


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


def check_fits(item: bytes, spec: Spec, field: str) -> None:
    """Refuse what would be given to an execution when it does not fit the job's schema."""
    checker_of(spec, field)(item)


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Any:
    """Compiled once: steps of workflows are checked one by one, by the thousand."""
    return validator_of(msgspec.json.decode(schema))


def checker_of(spec: Spec, field: str) -> Callable[[bytes], None]:
    """What refuses params that do not fit a job's schema, for many of them."""
    if spec.schema is None:
        return lambda item: None
    validator = _validator(msgspec.json.encode(spec.schema))

    def check(item: bytes) -> None:
        given = item if spec.batch is None else batch_of(item)
        for error in validator.iter_errors({**spec.params, **msgspec.json.decode(given)}):
            where = ".".join([field, *map(str, error.instance_path)])
            raise BadInput(f"{where}: {error.message}.", "See the job's `schema`; give it `params`.", field=where)

    return check
