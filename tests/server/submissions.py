"""Bodies of submissions, valid and refused: each field with values of all sorts in each form; and mixtures."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from horae.errors import BadInput, HoraeError
from horae.model.base.trace import TraceHeaders
from horae.server.reading.bodies import decode
from horae.server.routes.executions.submission import (
    SubmissionBody,
    SubmissionOptions,
    requests_of,
    shared_options,
    submit_of,
)

MIXTURES = 300
TRACE = TraceHeaders("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 4, 9, 10, 3.5, 10**17, 10**30),
    *("", "x", "5m", "PT1H", "0s", "500000d", "soon", "-5m", "x" * 300, "2026-11-15T08:00:00Z", "2026-11-15T08:00:00"),
    *([], ["a"], {}, {"a": "b"}, {"a": 1}, [{}], [{"a": 1}]),
)
OWN: dict[str, tuple[Any, ...]] = {
    "interval": (
        {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"},
        {"start": "2026-11-15T00:00:00Z", "end": "2026-11-14T00:00:00+02:00"},
        {"start": "2026-11-15T00:00:00Z"},
        {"start": "soon", "end": "2026-11-15T00:00:00Z"},
        {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z", "step": "1d"},
        {"start": None, "end": 5},
    ),
    "tags": ({"team": "data"}, {"team": None}),
    "params": ({"day": "2026-11-15", "n": {"a": [1]}},),
    "job": ("report", "r" * 129),
    "items": ([{"job": "report"}], [{}, {"a": 1}], [{"job": "report", "delay": "x"}, 5, {"job": "b", "prioriti": 1}]),
    "key": ("order-17", "k" * 257),
    "deadline": ("2100-01-01T00:00:00+01:00",),
    "colour": ("red",),
    "key_for": ("1d",),
}
FIELDS = (
    *("params", "delay", "at", "key", "keyFor", "priority", "deadline", "within", "tags", "interval", "propagate"),
    *("waitForDependencies", "job", "items", "atomic", "colour", "key_for"),
)


def submissions() -> Iterator[Any]:
    """Yield each body, always in the same order."""
    yield from ([], "x", None, {}, {"job": "report"}, {"items": []}, {"job": "report", "items": []})
    for field in FIELDS:
        for value in (*VALUES, *OWN.get(field, ())):
            yield {field: value}
            yield {"job": "report", field: value}
            yield {"job": "report", "items": [{"n": 1}], field: value}
            yield {"items": [{"job": "report", "params": {}}], field: value}
            yield {"items": [{"job": "report"}, {"job": "report", field: value}]}
    yield from _mixtures()


def _mixtures() -> Iterator[Any]:
    """Yield bodies with several fields, each of which is accepted alone."""
    accepted = {
        field: [
            value for value in (*VALUES, *OWN.get(field, ())) if answer({"job": "x", field: value})[1][0] == "accepted"
        ]
        for field in FIELDS
        if field not in ("items", "colour", "key_for", "job")
    }
    rng = random.Random(7)
    for _ in range(MIXTURES):
        fields = rng.sample(sorted(accepted), rng.randint(2, 7))
        one = {"job": "report", **{field: rng.choice(accepted[field]) for field in fields}}
        items = [{"job": "report", **{field: rng.choice(accepted[field]) for field in fields if field != "atomic"}}]
        yield rng.choice((one, {"items": items}, {**one, "items": [{"n": 1}]}))


_TRIGGER, _SUBMISSION = msgspec.json.Decoder(SubmissionOptions), msgspec.json.Decoder(SubmissionBody)


def answer(body: Any) -> list[Any]:
    """Return the answers to a body as a trigger of one job, and as a submission of executions."""
    sent = msgspec.json.encode(body)
    return [_answer(lambda: [submit_of("report", decode(sent, _TRIGGER), TRACE)]), _answer(lambda: _submitted(sent))]


def _submitted(sent: bytes) -> list[Any]:
    body = decode(sent, _SUBMISSION)
    if body.items is not None and body.job is not None:
        return [shared_options(body.job, body.items, body, TRACE), body.atomic]
    return [*requests_of(body, TRACE), body.atomic]


def _answer(read: Any) -> list[Any]:
    try:
        return ["accepted", [_refusal(one) if isinstance(one, HoraeError) else one for one in read()]]
    except BadInput as error:
        return _refusal(error)


def _refusal(error: HoraeError) -> list[Any]:
    return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
