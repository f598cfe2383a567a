"""Bodies of features, valid and refused: alert rules and channels, templates, rollouts, backfills, replays and others.

Each field has values of all sorts, and its own good and bad ones; mixtures have several good ones.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from horae.errors import BadInput
from tests.model.fields import feature_answers
from tests.model.fields.corpus import VALUES

RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "success-rate": ("jobs", ("below", "window", "minimum")),
    "failures-in-a-row": ("jobs", ("count",)),
    "retry-rate": ("jobs", ("above", "window", "minimum")),
    "overlong": ("jobs", ("times", "minDuration")),
    "late-worker": ("workers", ("after",)),
    "lag": ("jobs", ("after",)),
    "queue-age": ("queues", ("after",)),
    "missing-success": ("jobs", ("since",)),
    "deadline-risk": ("jobs", ("margin",)),
    "worker-lost": ("workers", ("within",)),
    "circuit-open": ("jobs", ()),
}
OF_RULES = ("channels", "severity", "description", "repeatEvery", "maxNotices", "recovery")
CHANNELS: dict[str, dict[str, Any]] = {
    "webhook": {"url": "https://hooks.example.com:8443/T0/x"},
    "email": {"host": "smtp.example.com", "from": "a@b.c", "to": "o@b.c"},
    "apprise": {"urls": "slack://a/b/c"},
}
OF_CHANNELS = {
    "webhook": ("url", "secret", "headers"),
    "email": ("host", "port", "tls", "username", "password", "from", "to"),
    "apprise": ("urls",),
}
KEPT: dict[str, dict[str, Any]] = {  # existing channels
    "webhook": {**CHANNELS["webhook"], "secret": "secret://sign", "headers": {"authorization": "Bearer k"}},
    "email": {**CHANNELS["email"], "username": "u", "password": "hunter2"},
    "apprise": {"urls": ["slack://a/b/c", "secret://chat"]},
}
TEMPLATE = {"name": "backup", "job": {"command": ["backup", "${with.region}"]}, "parameters": {"region": {}}}
OWN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("jobs", "queues", "workers"), (["etl-*", "report"], "report", ["a", "a"], ["x"] * 101, ["é"])),
    **dict.fromkeys(("below", "above"), ("95%", " 7 %", "100%", "101%", "0.5%", "1%", 50)),
    **dict.fromkeys(("window", "after", "since", "margin", "within", "minDuration"), ("24h", "30d", "366d", "1ms", 60)),
    **dict.fromkeys(("minimum", "count"), (5, 1000, 1_000_000, 1_000_001, "5", 2.0)),
    "times": (1, 1.1, 3, 1000, 1000.5, "3"),
    "channels": (["ops", "mail"], "ops", ["ops", "ops"], ["a"] * 21, ["x" * 129]),
    "severity": ("info", "critical", "warn"),
    "repeatEvery": ("1m", "4h", "31d", "59s"),
    "maxNotices": ("20/1h", "1/1m", "10001/1h", "20/1s"),
    "description": ("on call", "x" * 4097),
    "url": (
        *("https://example.com/alerts", "http://[::1]:80/x", "ftp://a", "https://a b/", "https://", "https://a:99999/"),
        *("secret://hook", "secret://env/URL", "https://hooks.example.com:8443/T1/y", "https://evil.example.com/"),
    ),
    "secret": ("whsec_" + "YWJj" * 11, "short", "secret://sign", "secret://", "x" * 513),
    "headers": (
        *({"authorization": "Bearer k"}, {"x": "secret://k"}, {"x": "secret://env/K"}, {"webhook-id": "1"}, {"": "x"}),
        *({"x y": "1"}, {"x": "a\r\nb: c"}, {"x": 1}, {f"x{i}": "1" for i in range(21)}, {"Host": "a"}),
    ),
    "host": ("smtp.example.com", "evil.example.com", "x" * 254),
    "port": (25, 587, 65535, 65536, "25"),
    "tls": ("starttls", "tls", "none", "ssl"),
    "username": ("u", "x" * 257),
    "password": ("secret://p", "secret://env/P", "hunter2", "x" * 1025),
    "from": ("horae@example.com", "a@b\nc", "é@b.c", "a b@c", "@b", "<a@b.c>", "2026-11-01T00:00:00Z"),
    "to": (["a@b.c", "d@e.f"], ["a@b.c"] * 51, "a@b.c\nbcc: x@y.z", ["a"]),
    "urls": (
        *(["slack://a/b/c", "secret://chat"], ["syslog://"], ["slack://a b"], ["tgram://1:a/2?%74emplate=/etc/x"]),
        *(["mailtos://u:p@x.com"], ["json://a/?redirect=yes"], ["slack://a,json://b/"], ["secret://env/X"]),
    ),
    "job": (
        *({"command": ["a", "${with.region}"]}, {"command": "a ${with.nothing}"}, {"command": {"shell": "${with.a}"}}),
        *({"name": "x", "command": "a"}, {"comand": "a"}, {"command": "${with."}, {}, {"params": {"a": "${with.b}"}}),
    ),
    "parameters": (
        *({"region": {"type": "string", "default": "eu"}}, {"region": {"type": "strin"}}, {"a b": {}}, {"region": 5}),
        *({"region": {"type": "string", "default": 5}}, {f"p{i}": {} for i in range(101)}),
    ),
    "kind": ("template", "job"),
    "version": (3, 5, 0, "3"),
    "change": ({"priority": 7},),
    "share": ("10%", 10, 100, "101%", "ten", -1, " 5% "),
    "versions": (
        *({"3": 90, "5": 10}, {"3": 0}, {"0": 1}, {"a": 1}, {"3": "1"}, {"3": True}),
        {str(n): 1 for n in range(1, 12)},
    ),
    "by": ("${params.customer}", "${job.", "x" * 513),
    "abortAbove": ("5%", 5, "no", 101),
    "trigger": ("nightly", "x" * 129),
    "maxConcurrent": (1, 1000, 1001, 4),
    "order": ("oldest", "newest", "new"),
    "force": (True,),
    "priority": (0, 9, 10),
    "params": ({"day": "1"}, [1]),
    "dryRun": (True,),
    "rate": ("10/1s", "fast"),
    "reason": ("retries",),
    "olderThan": ("7d", "soon"),
    "ids": (["a"], ["x"] * 1001),
    "filter": ({"job": "report"}, {"jb": 1}, {"olderThan": "7d"}, {"limit": 0}),
    "where": ({"tag": "customer=c-17"}, {"key": "k"}, {"params": {"a": 1}}, {"tga": "x"}, {"tag": "x" * 257}),
    "newUrl": (True,),
    "overlap": ("1h", 3600),
    "limit": (1, 1000, 1001),
}  # fmt: skip
ROLLOUT = {"version": 3, "share": "10%"}
BACKFILL = {"job": "report", "from": "2026-11-01T00:00:00Z", "to": "2026-11-15T00:00:00Z"}
OF_BACKFILLS = ("trigger", "maxConcurrent", "order", "force", "priority", "params", "dryRun")
WHICH = ("job", "queue", "errorType", "reason", "text", "since", "until", "olderThan")


def bodies(noun: str) -> Iterator[Any]:
    """Yield each body of a noun, always the same ones in the same order."""
    yield from ([], "x", None, {}, {"nmae": "x"}, {"kind": "x"}, {"kind": None})
    for number, (base, fields) in enumerate(SHAPES[noun]()):
        yield base
        yield {**base, "colour": 1}
        yield from ({name: value for name, value in base.items() if name != left} for left in base)
        for field in sorted({*fields, *base} - ({"kind"} if number else set())):
            yield from ({**base, field: value} for value in values(field))
        yield from _mixtures(noun, base, fields)


def values(field: str) -> tuple[Any, ...]:
    return (*VALUES, *OWN.get(field, ()))


def _mixtures(noun: str, base: Mapping[str, Any], fields: tuple[str, ...]) -> Iterator[Any]:
    """Yield bodies with several fields, each of which is accepted alone."""
    accepted = {
        field: [value for value in values(field) if answer(noun, {**base, field: value})[0] == "accepted"]
        for field in fields
    }
    some = [field for field in fields if accepted[field]]
    rng = random.Random(7)
    for _ in range(20 if len(some) > 1 else 0):
        chosen = rng.sample(some, rng.randint(2, len(some)))
        yield {**base, **{field: rng.choice(accepted[field]) for field in chosen}}


Shapes = Iterator[tuple[dict[str, Any], tuple[str, ...]]]


def _rules() -> Shapes:
    for kind, (about, own) in RULES.items():
        yield {"kind": kind}, (about, *own, *(OF_RULES if kind == "lag" else ()))


def _channels() -> Shapes:
    for kind, base in CHANNELS.items():
        yield {"kind": kind, **base}, (*OF_CHANNELS[kind], "description")


def _templates() -> Shapes:
    yield dict(TEMPLATE), ("kind", "description", "parameters", "job")


def _rollouts() -> Shapes:
    yield dict(ROLLOUT), ("version", "change", "share", "versions", "by", "abortAbove", "minimum")
    yield {"versions": {"3": 90, "5": 10}}, ("by", "abortAbove", "minimum")


SHAPES: dict[str, Callable[[], Shapes]] = {
    "rule": _rules,
    "channel": _channels,
    "changed channel": _channels,
    "template": _templates,
    "rollout": _rollouts,
    "backfill": lambda: iter([(dict(BACKFILL), OF_BACKFILLS)]),
    "replay": lambda: iter([({"filter": {"job": "report"}}, ("filter", "rate", "params"))]),
    "dead letters": lambda: iter([({}, (*WHICH, "limit", "cursor"))]),
    "webhook": lambda: iter([({}, ("secret", "newUrl", "overlap"))]),
    "erasure": lambda: iter([({"where": {"tag": "a"}}, ("where", "cursor", "limit"))]),
}


def answer(noun: str, body: Any) -> list[Any]:
    """Return the outcome for a body: its stored and shown form, or the refusal."""
    try:
        return ["accepted", *feature_answers.ANSWERS[noun](body)]
    except BadInput as error:
        return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
