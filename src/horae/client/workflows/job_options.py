"""Options of `@app.job(...)` as a definition carries them: REST's names, and Python's values spelled."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from horae.client import spelling
from horae.client.spelling import camel, items_of, mapping_of, named, option, policy, refuse_unknown, spelled
from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.fields.kinds import Custom, Duration, Listed
from horae.model.fields.table import Object, Row

Spell = Callable[[Any], Any]


def described(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options by their names in REST. An unknown one is a TypeError, as in any call."""
    refuse_unknown(options, (*SPELLED, *OF_DECORATOR), "@app.job")
    given = ((name, value) for name, value in options.items() if value is not None)
    return {camel(name): named(option(name, "@app.job"), SPELLED[name], value) for name, value in given}


def plain(part: Any, name: str) -> Any:
    """A rule as JSON carries it: spans and instants may be Python's, also inside `misfire`."""
    if isinstance(part, timedelta):
        return spelled(part)
    if isinstance(part, datetime):
        if part.tzinfo is None:
            raise BadInput(f"{part} does not say its offset from UTC.", "Give it a tzinfo.", field=f"schedule.{name}")
        return part.isoformat()
    return {key: plain(value, key) for key, value in part.items()} if isinstance(part, Mapping) else part


def _as_is(value: Any) -> Any:
    return value


def _object(value: Any) -> Any:
    """A mapping as a plain one."""
    return dict(value) if isinstance(value, Mapping) else value


def _dependency(job: Any) -> Any:
    """A job to depend on: its name or id, its function, or an object of either with a condition."""
    if isinstance(job, Mapping):
        return {**job, "job": getattr(job.get("job"), "name", job.get("job"))}
    return getattr(job, "name", job)


def _rule(rule: Any) -> Any:
    """An object as a plain one; its spans may be Python's."""
    return {name: plain(value, name) for name, value in rule.items()} if isinstance(rule, Mapping) else rule


def _each(spell: Spell, wanted: str) -> Spell:
    return lambda values: [spell(value) for value in items_of(values, wanted)]


def _needs(needs: Any) -> Any:
    return needs if isinstance(needs, Mapping) else items_of(needs, "a list of labels or a mapping")


def _retry(retry: Any) -> Any:
    return policy(retry, "a list of delays, a mapping or a function")


OF_DECORATOR = ("name", "description", "isolation", "process_limits")  # options that the decorator itself takes
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
    """Choose how a value of Python is spelled in a definition."""
    kind = row.kind
    if row.name in _OWN:
        return _OWN[row.name]
    if isinstance(kind, Listed):
        return _each(_rule, f"a list of {row.name}")
    if isinstance(kind, Custom) and kind.option == "repeated":
        return _each(_as_is, f"a list of {row.name}")
    return spelled if isinstance(kind, Duration) else _rule if isinstance(kind, Object) else _as_is


SPELLED: Mapping[str, Spell] = {
    row.keyword: _spell(row) for row in JOB.rows if row.field.sdk and row.keyword not in OF_DECORATOR
}
