"""Options of `@app.job(...)` in the form of a definition: with REST's names and JSON values."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from horae.client import spelling
from horae.client.spelling import camel, items_of, mapping_of, named, option, policy, refuse_unknown, span_value
from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.fields.kinds import Custom, Duration, ListOf
from horae.model.fields.table import Object, Row

Spell = Callable[[Any], Any]


def described(options: Mapping[str, Any], call: str, others: Iterable[str]) -> dict[str, Any]:
    """Return the given options by their names in REST. `others` are the options of a call besides those of any job.

    An unknown option raises a TypeError, as in any call.
    """
    refuse_unknown(options, (*SPELLED, *others), call)
    given = ((name, value) for name, value in options.items() if value is not None)
    return {camel(name): named(option(name, call), SPELLED.get(name, _as_is), value) for name, value in given}


def plain(part: Any, name: str) -> Any:
    """Return a rule as JSON values: spans and instants may be Python objects, also inside `misfire`."""
    if isinstance(part, timedelta):
        return span_value(part)
    if isinstance(part, datetime):
        if part.tzinfo is None:
            raise BadInput(f"{part} has no time zone.", "Give it a tzinfo.", field=f"schedule.{name}")
        return part.isoformat()
    return {key: plain(value, key) for key, value in part.items()} if isinstance(part, Mapping) else part


def _as_is(value: Any) -> Any:
    return value


def _object(value: Any) -> Any:
    """Return a mapping as a dict, any other value unchanged."""
    return dict(value) if isinstance(value, Mapping) else value


def _dependency(job: Any) -> Any:
    """Return a dependency in the form of a definition: the name or id of a job, or an object with a condition.

    The job may also be given as its function.
    """
    if isinstance(job, Mapping):
        return {**job, "job": getattr(job.get("job"), "name", job.get("job"))}
    return getattr(job, "name", job)


def _rule(rule: Any) -> Any:
    """Return a rule as a dict with spans as JSON values."""
    return {name: plain(value, name) for name, value in rule.items()} if isinstance(rule, Mapping) else rule


def _each(spell: Spell, wanted: str) -> Spell:
    return lambda values: [spell(value) for value in items_of(values, wanted)]


def _needs(needs: Any) -> Any:
    return needs if isinstance(needs, Mapping) else items_of(needs, "a list of labels or a mapping")


def _retry(retry: Any) -> Any:
    return policy(retry, "a list of delays, a mapping or a function")


OF_DECORATOR = ("name", "description", "isolation", "process_limits")  # options that the decorator itself handles
_OWN: Mapping[str, Spell] = {
    "schedule": _object,
    "triggers": _each(_object, "a list of triggers"),
    "params": mapping_of,
    "dependencies": _each(_dependency, "a list of jobs"),
    "needs": _needs,
    "retry": _retry,
    "timeouts": spelling.timeouts,
}


def _spell(row: Row) -> Spell:
    """Return the function that converts a Python value of a field to a definition's value."""
    kind = row.kind
    if row.name in _OWN:
        return _OWN[row.name]
    if isinstance(kind, ListOf):
        return _each(_rule, f"a list of {row.name}")
    if isinstance(kind, Custom) and kind.option == "repeated":
        return _each(_as_is, f"a list of {row.name}")
    return span_value if isinstance(kind, Duration) else _rule if isinstance(kind, Object) else _as_is


SPELLED: Mapping[str, Spell] = {
    row.keyword: _spell(row) for row in JOB.rows if row.field.sdk and row.keyword not in OF_DECORATOR
}
