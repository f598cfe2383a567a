"""Workflows, valid and refused: each field of a step and of a workflow with values of all sorts, and mixtures."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import structs

from horae.errors import BadInput
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition

MIXTURES = 400
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 10, 10**7, 10**30, 0.5),
    *("", "x", "a b", "5m", "0s", "500d", "soon", "x" * 5000, "a\x00b", "5%", "101%", "skip", "allDone", "alDone"),
    *("${true}", "${params.n > 1}", "${params.", "${steps.load.result}", "${steps.laod.result}", "it ${true}", "${1}"),
    *([], [1], ["load"], ["laod"], [None], ["x"] * 40, {}, {"a": 1}, {"name": "p"}, {"nmae": "p"}, {1: 2}),
)
FOLLOWERS: tuple[dict[str, Any], ...] = ({"name": "load", "job": "load-orders"}, {"name": "b-2", "job": "b"})
WAITS: dict[str, tuple[Any, ...]] = {
    "sleep": ("5m", {"until": "${params.at}"}, {"until": "2030-01-01T00:00:00Z"}, {"until": "soon"}, {"til": 1}),
    "event": (
        *("paid", {"name": "paid", "filter": "${event.payload.n == params.n}", "timeout": "1d"}, {"filter": "${true}"}),
        *({"name": "paid", "timeout": "1d", "onTimeout": "skip"}, {"name": "paid", "onTimeout": "fail"}),
        *({"name": "paid", "timeout": "1d", "onTimeout": "reject"}, {"name": "paid", "timeout": 0}, {"name": 5}),
        *({"name": "paid", "timeout": None}, {"name": None}, {"name": "p", "filter": 5}, {"name": "x" * 300}),
    ),
    "signal": (
        *("go", {"name": "go", "timeout": "1d", "onTimeout": "skip"}, {"name": "go", "onTimeout": "skip"}),
        *({"timeout": "1d"}, {"name": ""}, {"name": "go", "filter": "x"}, {"name": "go", "timeout": "1d"}),
    ),
    "approval": (
        *(True, {}, {"roles": ["operator", "operator"], "message": "Ship ${params.n}?", "remind": "4h"}),
        *({"timeout": "2d"}, {"timeout": "2d", "onTimeout": "approve"}, {"onTimeout": "reject"}, {"roles": "operator"}),
        *({"roles": ["king"]}, {"roles": [5]}, {"roles": ["x"] * 20}, {"message": 5}, {"remind": "0s"}, {"rols": []}),
        *({"timeout": "2d", "onTimeout": "fail"}, {"roles": ["viewer"]}, {"roles": ["admin", "editor"]}),
    ),
    "callback": (True, {}, {"timeout": "1h"}, {"timeout": "1h", "onTimeout": "skip"}, {"onTimeout": "skip"}, {"a": 1}),
}
SWITCHES: tuple[Any, ...] = (
    [{"when": "${params.n > 1}", "then": ["load"]}, {"else": ["b-2"]}],
    [{"when": "${true}", "then": "load"}],
    [{"when": True, "then": ["load"]}, {"when": "${params.n > 1}", "then": "b-2"}],
    *([{"else": ["load"]}, {"else": []}], [{"when": "${true}"}], [{"then": ["load"]}], [{"wehn": 1}], [5]),
    *([{"else": ["load"], "when": "${true}"}], [{"when": 5, "then": []}], [{"when": "${true}", "then": [5]}]),
    [{"when": "${true}", "then": []}] * 65,
)
OWN: dict[str, tuple[Any, ...]] = {
    **WAITS,
    "switch": SWITCHES,
    "name": ("load", "a.b", "x" * 129, "a-b", "_a"),
    "after": ("load", ["load", "load"], ["load", 5], ["a"]),
    "when": ("${steps.load.result.ok}", "${item}", "yes", "${1 + 'a'}"),
    "join": ("noneFailed", "oneSuccess", "always"),
    "foreach": (
        *("${steps.load.result}", [1, 2], {"items": [1], "concurrency": 10, "tolerate": "10%"}, {"items": "${3}"}),
        *({"items": [1], "tolerate": 3}, {"items": [1], "tolerate": "101%"}, {"items": [1], "concurrency": 0}),
        *({"items": {"a": 1}}, {"concurrency": 3}, {"items": [1], "tolerat": 1}, {"items": [1], "tolerate": -1}),
        *({"items": [0] * 100_001}, {"items": "x"}, {"items": [1], "concurrency": None, "tolerate": None}),
    ),
    "while": ("${index < 3}", True),
    "until": ("${steps.a.result.done}", True),
    "every": ("10s",),
    "maxRuns": (9, 10_001),
    "params": ({"day": "${params.day}"}, {"x": "${steps.load.result}"}, {"x": "${foo}"}, {"x": "${item}"}, {"x": {1}}),
    "undo": (
        *("take-back", {"job": "u", "params": {"x": "${steps.a.result}"}}, {"job": "u", "command": "x"}),
        *({"command": "true", "retries": 2}, {"job": "u", "retries": -1}, {"jb": "u"}, {"job": 5}),
        *({"job": "u", "x": 1}, {"params": {}}, {"job": None, "command": "true"}),
        *({"steps": [{"name": "q", "command": "true"}]}, {"job": "u", "after": ["load"]}, {"job": "u", "priority": 3}),
        *({"job": "u", "params": 5}, {"job": "u", "params": {"x": "${steps.z.result}"}}),
    ),
    "ignoreFailure": (),
    "priority": (9,),
    "job": ("load-orders", "x" * 129),
    "command": (["ls", "${params.at}"], {"shell": "a | b", "cwd": "/tmp"}, {"shl": 1}, ["x", "${steps.load.result}"]),
    "python": ("digest", {"function": "f", "isolation": "process"}),
    "http": ("https://example.com", {"url": "https://a.b", "method": "GET"}),
    "steps": ([{"name": "x", "command": "true"}], [{"name": "x", "retrys": 2}], [{"nme": "x"}]),
    "workflow": (
        [{"name": "x", "command": "true"}],
        {"steps": [{"name": "y", "job": "j"}], "onError": "ignore"},
        {"steps": []},
        {"steps": [{"name": "y", "job": "j"}], "timeout": "5m"},
    ),
    "retries": (3,),
    "retry": ({"delay": "10s"}, ["1s"], {"dealy": 1}),
    "timeout": ("5m",),
    "timeouts": ({"queue": "10m", "total": "1h"}, {"qeue": 1}),
    "limits": ([{"key": "a", "concurrency": 1}],),
    "env": ({"A": "1"}, {"HORAE_A": "1"}),
    "schema": ({"type": "object"},),
    "circuit": ("50%",),
    "keyFor": ("1d",),
    "schedule": ("@daily",),
    "colour": ("red",),
}  # fmt: skip
KINDS: tuple[dict[str, Any], ...] = (
    {"job": "load-orders"},
    {"command": "true"},
    {"steps": [{"name": "x", "command": "true"}]},
    {"sleep": "5m"},
    {"approval": True},
    {"switch": [{"when": "${params.n > 1}", "then": ["load"]}]},
    {},
)
ALONE = {*WAITS, "switch", "job", "command", "python", "http", "steps", "workflow", "name"}
LOOPS = {"while", "until", "every", "maxRuns"}
OF_WORKFLOWS: dict[str, tuple[Any, ...]] = {
    "steps": ([{"name": "a", "job": "j"}], [], [{"name": "a", "job": "j"}] * 2, 5, None),
    "onError": ("fail", "finish", "ignore", "ingore", 5, None),
    "output": ("${steps.a.result}", {"n": "${steps.a.result.n}", "x": [1]}, "${steps.z.result}", 5, None, "${item}"),
    "onSuccess": ([{"name": "well", "job": "j"}], [{"name": "a", "job": "j"}], {}, [], [{"name": "well"}]),
    "onFailure": ([{"name": "ill", "job": "j", "params": {"text": "${error.message}"}}], 5),
    "finally": ([{"name": "z", "job": "j", "after": ["a"]}], [{"name": "z", "job": "j", "undo": "u"}], None),
    "timeout": ("2h", "0s", 5, None),
    "colour": (1,),
    "on_error": ("fail",),
}  # fmt: skip


def workflows() -> Iterator[Any]:
    """Yield values of the field `workflow`, always the same in the same order."""
    yield from ([], {}, 5, "x", [5], [None], [{}], {"step": []}, [{"job": "j"}], [{"name": 5, "job": "j"}])
    for kind in KINDS:
        yield with_step(kind)
        for field, own in OWN.items():
            yield from (with_step({**kind, field: value}) for value in own)
    for field in sorted(OWN.keys() - ALONE - LOOPS - {"keyFor", "schedule", "colour"}):
        yield from (with_step({**KINDS[0], field: value}) for value in VALUES)
    for field in sorted(ALONE - {"name"}):
        yield from (with_step({field: value}) for value in (*VALUES, *OWN[field]))
    for field in sorted(LOOPS):
        loop = {} if field in ("while", "until") else {"until": "${true}"}
        yield from (with_step({**KINDS[1], **loop, field: value}) for value in (*VALUES, *OWN[field]))
    for field, values in OF_WORKFLOWS.items():
        yield from ({"steps": [{"name": "a", "job": "j"}], field: value} for value in values)
    yield [{"name": "a", "job": "j"}] * 1001
    yield from _mixtures()


def with_step(said: dict[str, Any]) -> dict[str, Any]:
    return {"steps": [{"name": "a", **said}, *FOLLOWERS]}


def _mixtures() -> Iterator[Any]:
    """Yield steps with several fields, each of which is accepted with the same kind on its own."""
    rng = random.Random(7)
    accepted = {
        i: [
            {field: value, **({"until": "${true}"} if field in ("every", "maxRuns") else {})}
            for field, own in OWN.items()
            for value in own
            if field not in ALONE and answer(with_step({**kind, "until": "${true}", field: value}))[0] == "accepted"
        ]
        for i, kind in enumerate(KINDS[:3])
    }
    for _ in range(MIXTURES):
        i = rng.randrange(3)
        said = {field: value for one in rng.sample(accepted[i], rng.randint(2, 7)) for field, value in one.items()}
        yield with_step({**KINDS[i], **said})
    for _ in range(MIXTURES // 4):
        more = {field: rng.choice(values) for field, values in OF_WORKFLOWS.items() if rng.random() < 0.3}
        yield {"steps": [{"name": "a", "job": "j"}], **more}


def answer(value: Any) -> list[Any]:
    """Return the outcome for a workflow: its stored and shown forms, or the refusal."""
    try:
        spec = parse_definition({"name": "w", "workflow": value}, namespace_name="default", created_at=0).spec
    except BadInput as error:
        return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
    stored = msgspec.json.decode(msgspec.json.encode(spec), type=type(spec))
    flow, shown = _plain(stored.task), render_definition(stored)["workflow"]
    for one in (flow, shown):
        one["steps"] = [step for step in one["steps"] if step["name"] not in ("load", "b-2")]
    return ["accepted", flow, shown, stored.timeout]


def _plain(value: Any) -> Any:
    """Return a stored value with all attributes that differ from their defaults."""
    if isinstance(value, msgspec.Struct):
        said = {name: _plain(part) for name, part in structs.asdict(value).items() if part not in (None, "", (), {})}
        return {"kind": type(value).__name__, **said}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
