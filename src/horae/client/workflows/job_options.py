"""Options of `@app.job(...)` as a definition carries them: REST's names, and Python's values spelled."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from horae.client import spelling
from horae.client.spelling import camel, items_of, mapping_of, named, option, policy, refuse_unknown, spelled
from horae.errors import BadInput

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


def _patient(part: Any) -> Any:
    """A preference or an affinity; its patience may be Python's."""
    return {**part, "patience": spelled(part.get("patience"))} if isinstance(part, Mapping) else part


def _rule(rule: Any) -> Any:
    """A rule of what submissions share; its spans may be Python's."""
    return {name: plain(value, name) for name, value in rule.items()} if isinstance(rule, Mapping) else rule


def _each(spell: Spell, wanted: str) -> Spell:
    return lambda values: [spell(value) for value in items_of(values, wanted)]


def _needs(needs: Any) -> Any:
    return needs if isinstance(needs, Mapping) else items_of(needs, "a list of labels or a mapping")


def _retry(retry: Any) -> Any:
    return policy(retry, "a list of delays, a mapping or a function")


_PLAIN = (
    *(
        "retries",
        "pause_after",
        "queue",
        "priority",
        "interruptible",
        "preemptible",
        "preempts",
        "durable",
        "sensitive",
        "slots",
    ),
    *("resources", "spread", "on_dependency_timeout", "tags", "delivery", "concurrency", "rate", "burst"),
    *("sequence", "sensitive"),
)
OF_DECORATOR = ("name", "description", "isolation", "process_limits")  # options that the decorator itself takes
SPELLED: Mapping[str, Spell] = {
    **dict.fromkeys(_PLAIN, _as_is),
    **dict.fromkeys(("timeout", "within", "grace", "dependency_timeout", "key_for"), spelled),
    **dict.fromkeys(("schedule", "circuit"), _object),
    **dict.fromkeys(("unique", "debounce", "batch", "cache"), _rule),
    "params": mapping_of,
    "triggers": _each(_object, "a list of triggers"),
    "limits": _each(_object, "a list of limits"),
    "prefers": _each(_patient, "a list of labels or preferences"),
    "affinity": _patient,
    "dependencies": _each(_dependency, "a list of jobs"),
    "needs": _needs,
    "secrets": _each(_as_is, "a list of names"),
    "retry": _retry,
    "timeouts": spelling.timeouts,
}
