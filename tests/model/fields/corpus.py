"""Definitions of jobs, valid and refused: each field with values of all sorts, on each kind of task, and mixtures."""

import random
from collections.abc import Iterator
from typing import Any

from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition

MIXTURES = 400
NOW = 1_800_000_000 * 1_000_000
TASKS: tuple[dict[str, Any], ...] = (
    {"command": "true"},
    {"python": "digest"},
    {"http": "https://example.com"},
    {"workflow": {"steps": [{"name": "load", "job": "load-orders"}]}},
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 1001, 10**7, 10**30, 0.5, 1e300),
    *("", "x", "a b", "5m", "0s", "500d", "soon", "x" * 5000, "a\x00b", "fail", "skip", "at-most-once", "at-most-onec"),
    *("100/1m", "0/s", "50%", "0%", "${params.model}", "${params.", "@daily", "0195c1d2-0000-7000-8000-000000000000"),
    *([], [1], ["a"], ["gpu=a100", "ssd"], ["a b"], ["1s", "10s"], [None], ["x"] * 40),
    *({}, {"a": 1}, {"a": "b"}, {"key": "${params.a}"}, {"key": "${params."}, {1: 2}, {"A-B": "1"}),
    *({"HORAE_X": "1"}, {f"t{i}": "1" for i in range(40)}, {"every": "5m"}, {"type": "array"}),
)
OWN: dict[str, tuple[Any, ...]] = {
    "retry": (
        *({"delay": "10s"}, {"delay": "1s", "factor": 2, "max": "5m", "jitter": 0.1}, {"dealy": 1}),
        *({"delays": ["1s"], "factor": 2}, {"budgets": {"lost": 3}}, {"budgets": {"lost": 300}}),
        *({"retryOn": ["http:5xx"], "giveUpOn": "ValueError"}, {"retryOn": "X", "giveUpOn": "X"}),
    ),
    "timeouts": (
        {"queue": "10m", "start": "30s", "run": "5m", "heartbeat": "1m", "total": "1h"},
        *({"run": "1s"}, {"total": "1s"}, {"queu": "1s"}, {"queue": 0}),
    ),
    "limits": (
        [{"key": "${params.a}", "concurrency": 2, "rate": "10/1m", "burst": 5}],
        *({"key": "a", "concurrency": 1}, [{"key": "a"}], [{"concurrency": 2}], [{"key": "a", "burst": 2}]),
        [{"key": "a", "rate": "1/s"}, {"key": "a", "rate": "2/s"}],
    ),
    "prefers": (
        *(["zone=eu"], [{"label": "zone=eu-1", "weight": 2, "patience": "30s"}], [{"label": "x", "wieght": 1}]),
        *(["a", "a"], ["a"] * 9, [{"weight": 2}]),
    ),
    "resources": ({"memory": "2GiB", "gpu": 1}, {"slots": 2}, {"memory": "much"}, {"memory": "1.5"}, {"a b": 1}),
    "affinity": ({"key": "${params.model}", "patience": "30s"}, {"key": "x", "patince": "1s"}),
    "unique": (
        *({"key": "${params.a}", "for": "live"}, {"for": "24h", "keep": "latest"}, {"keep": "frist"}, {"fro": 1}),
    ),
    "debounce": ({"key": "a", "wait": "5s", "max": "1m"}, {"wait": "5s", "max": "1s"}, {"max": "1m"}),
    "batch": ({"size": 100, "wait": "1s"}, {"size": 0}, {"wait": "1s"}),
    "cache": ({"ttl": "1h"}, {"tll": "1h"}, {"ttl": "0s"}),
    "circuit": (
        {"failures": "50%", "window": "1m", "minimum": 10, "openFor": "30s", "probes": 1, "key": "${params.x}"},
        *({"failures": "150%"}, {"windw": 1}),
    ),
    "dependencies": (
        *(["extract"], [{"job": "extract", "condition": "failure"}], ["report"], [{"job": "a", "condition": "x"}]),
        [{"jb": "a"}],
    ),
    "secrets": (["token"], ["secret://token"]),
    "schema": ({"type": "object", "properties": {"a": {"$ref": "http://x"}}}, {"type": "object"}),
    "params": ({"a": 1, "b": {"c": 2}}, {"a": "secret://x"}),
    "env": ({"TOKEN": "secret://token"}, {"A": 1}, {"A": "${params."}),
    "schedule": ("0 9 * * MON-FRI", {"every": "5m", "overlp": 1}, "every day", {"cron": "0 9 * * *"}),
    "triggers": (["@daily", {"every": "5m"}], [{"event": "x"}], [5], [{"name": "a", "at": "2030-01-01T00:00:00Z"}]),
    "command": (
        *("echo 'a b' c", ["a", "b"], {"shell": "a | b"}, {"argv": ["a"], "limits": {"memory": "1GiB"}}, {"sh": "a"}),
    ),
    "python": ({"function": "f", "isolation": "process"}, {"function": "f", "isolation": "vm"}),
    "http": ({"url": "http://x", "method": "PSOT"}, {"url": "http://x", "redirects": 2}),
    "workflow": (
        [{"name": "a", "command": "true", "retries": 3, "timeout": "5m"}],
        {"steps": [{"name": "a", "command": "true", "retries": -1}]},
        {"steps": [{"name": "a", "job": "x"}], "timeout": "5m"},
        {"steps": [{"name": "a", "job": "x", "keyFor": "1d"}]},
    ),
}  # fmt: skip


def definitions() -> Iterator[Any]:
    """Yield each body, always the same ones in the same order."""
    yield from ([], "x", None, {}, {"name": "report"}, {"nmae": "x"})
    yield from ({"name": "report", "command": "a", "colour": 1}, {"name": "report", "command": "a", "key_for": "1d"})
    for field in sorted(JOB.names):
        for value in (*VALUES, *OWN.get(field, ())):
            yield {"name": "report", **TASKS[0], field: value}
        for value in OWN.get(field, ()):
            yield from ({"name": "report", **task, field: value} for task in TASKS[1:])
    yield from _mixtures()


def _mixtures() -> Iterator[Any]:
    """Yield bodies with several fields, each of which is accepted alone."""
    accepted = {
        field: [value for value in (*VALUES, *OWN.get(field, ())) if _is_accepted(field, value)]
        for field in sorted(JOB.names)
        if field not in ("name", "command", "python", "http", "workflow")
    }
    rng = random.Random(7)
    for _ in range(MIXTURES):
        fields = rng.sample(sorted(accepted), rng.randint(2, 7))
        yield {"name": "report", **rng.choice(TASKS), **{field: rng.choice(accepted[field]) for field in fields}}


def _is_accepted(field: str, value: Any) -> bool:
    return answer({"name": "report", "command": "true", field: value})[0] == "accepted"


def answer(body: Any) -> list[Any]:
    """Return the outcome for a body: the fields that differ from an empty job, or the refusal."""
    try:
        found = parse_definition(body, namespace_name="default", created_at=NOW)
    except BadInput as error:
        return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
    shown = render_definition(found.spec)
    said = {name: value for name, value in shown.items() if name not in _USUAL or value != _USUAL[name]}
    said |= {"dependencies": [list(found.dependencies), found.conditions]} if found.dependencies else {}
    return ["accepted", said, [type(when.trigger).__name__ for when in found.whens]]


_USUAL = render_definition(
    parse_definition({"name": "report", "command": "true"}, namespace_name="default", created_at=NOW).spec
)
