"""The options of a submission, which is everything except its job and params, in the API's form."""

from collections.abc import Iterable, Mapping
from typing import Any

from horae.client.encode import instant, span
from horae.client.spelling import OptionTypeError, items_of, named, option, refuse_unknown
from horae.model.fields.kinds import Duration, Moment
from horae.model.fields.table import Row
from horae.model.fleet.submit import SUBMISSION

OF_ONE = {row.keyword: row for row in SUBMISSION.rows if row.field.sdk}
OF_MANY = {name: row for name, row in OF_ONE.items() if row.field.shared}
OF_CALLS = tuple(name for name, row in OF_ONE.items() if row.field.called)  # accepted by `job.submit(...)`


def described(options: Mapping[str, Any], known: Mapping[str, Row], call: str) -> dict[str, Any]:
    """Return options by their names in REST, without defaults; raise a TypeError for an unknown option."""
    refuse_unknown(options, known, call)
    rows: Iterable[tuple[Row, Any]] = ((known[name], value) for name, value in options.items())
    return {row.name: _spelled(row, value, call) for row, value in rows if value is not None and value != row.default}


def _spelled(row: Row, value: Any, call: str) -> Any:
    if isinstance(row.kind, Duration):
        return span(value)
    if isinstance(row.kind, Moment):
        return instant(value)
    return named(option(row.keyword, call), _interval, value) if row.attribute == "interval" else value


def _interval(value: Any) -> dict[str, Any]:
    wanted = "a pair of instants, (start, end)"
    pair = items_of(value, wanted)
    if len(pair) != 2:
        raise OptionTypeError(wanted, value)
    return {"start": instant(pair[0]), "end": instant(pair[1])}
