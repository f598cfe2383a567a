"""Bodies of queues, policies, namespaces, quotas, keys, holds and circuits, valid and refused; and settings."""

import random
from collections.abc import Iterator
from typing import Any

from horae.config.settings import TABLE
from tests.model.fields.corpus import VALUES
from tests.model.fields.tenant_answers import answer

OF_POLICIES = {
    "fifo": (),
    "priority": ("ageing", "strict"),
    "deadline": (),
    "shortest": ("factor",),
    "fair": ("by", "within", "weights", "defaultWeight", "reserve", "charge"),
}
OF_QUEUES = ("policy", "default", "maxQueued", "preempts", "concurrency", "rate", "burst", "sequence")
OF_NAMESPACES = ("description", "weight", "retention", "archive", "defaults", "queuePolicy")
OF_QUOTAS = (
    *("queued", "running", "executionsPerDay", "workerSecondsPerDay", "storedBytesPerDay"),
    *("submissionsPerSecond", "startsPerSecond", "over"),
)
OF_KEYS = ("name", "role", "permissions", "queues", "jobs", "rate", "expiresAt")
POLICIES: tuple[Any, ...] = (
    *("fifo", "fair", "fiar", "deadline", {"kind": "priority"}, {"kind": "shortest", "factor": 2}, {"knd": "fifo"}),
    *({"kind": "fair", "within": {"kind": "priority", "strict": True}}, {"kind": "fifo", "ageing": "5s"}),
    *({"kind": None}, {"kind": "priority", "ageing": None}, {"kind": "fair", "weights": {"a": 2}, "charge": "time"}),
)
OWN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("policy", "queuePolicy", "within"), POLICIES),
    "by": ("job", "caller", "namespace", "customer", "${params.customer}", "${nobody.knows}", "${params.a + '/b'}"),
    "weights": ({"acme": 5, "b": 0.5}, {"acme": 0}, {"acme": "5"}, {"acme": 1001}, {"x" * 300: 1}, {"a": True}),
    "reserve": ({"acme": 4}, {"acme": "25%"}, {"a": "60%", "b": "50%"}, {"a": "x%"}, {"a": 0}, {"a": "0%"}, {"a": 1.5}),
    "charge": ("time", "executions", "tmie"),
    "defaultWeight": (0.001, 1000, 1001),
    "factor": (0.1, 1000, 0.01, "10"),
    "maxQueued": (0, 10**9, 10**9 + 1),
    "rate": ("100/1m", "5/s", "0/1m", "5 per 1m"),
    "weight": (0.01, 1000, 0.001, 2.5),
    "retention": (
        *("30d", "1s", 86400, {"success": "7d"}, {"failed": "90d", "success": None}, {"lost": "1d"}, {"success": "1s"}),
        *({"cancelled": 7200, "skipped": "9999d"}, "5000d"),
    ),
    "archive": (["failed"], ["failed", "success", "failed"], ["lost"], "failed"),
    "defaults": (
        *(
            {"retries": 3, "timeout": "1h", "tags": {"team": "a"}},
            {"command": "true"},
            {"priority": 12},
            {"queue": None},
        ),
        *({"retry": {"delay": "never"}}, {"tags": ["a"]}, {"keyFor": "1d", "pauseAfter": 3}, {"grace": "2h"}),
    ),
    "over": ("refuse", "wait", "wiat"),
    **dict.fromkeys(OF_QUOTAS[:5], (10**15, 10**15 + 1, 100)),
    **dict.fromkeys(OF_QUOTAS[5:7], (0.01, 0.001, 1_000_000, 1_000_001, 500)),
    "role": ("viewer", "admin", "root"),
    "permissions": (["commands"], ["sensitive", "installation"], ["root"]),
    "queues": (["etl"], ["a b"], ["q"] * 101),
    "jobs": (["etl-*"], ["a b"], ["é"]),
    "expiresAt": ("2030-01-01T00:00:00Z", "2030-01-01"),
    "value": ("hunter2", "x" * 40_000),
}
# For each noun: the fields of every body, and the fields to vary.
SHAPES: dict[str, tuple[tuple[dict[str, Any], tuple[str, ...]], ...]] = {
    "policy": tuple(({"kind": kind}, fields) for kind, fields in OF_POLICIES.items()),
    "queue": (({}, OF_QUEUES),),
    "changed queue": (({}, OF_QUEUES),),
    "namespace": (({}, OF_NAMESPACES),),
    "changed namespace": (({}, OF_NAMESPACES),),
    "quota": (({}, OF_QUOTAS),),
    "key": (({"name": "ci", "role": "viewer"}, OF_KEYS),),
    "rotation": (({}, ("overlap",)),),
    "hold": (({}, ("for", "until", "from", "reason", "drain")),),
    "window": (({}, ("reason", "drain")),),
    "pause": (({}, ("reason",)),),
    "circuit": (({}, ("key", "reason", "for")),),
    "secret": (({"value": "hunter2"}, ("value",)),),
}
NOUNS = (*SHAPES, "setting")


def bodies(noun: str) -> Iterator[Any]:
    """Yield each body of a noun, always the same ones in the same order."""
    if noun == "setting":
        yield from _settings()
        return
    yield from ([], "x", None, {}, {"nmae": "x"}, {"kind": "x"}, {"kind": None})
    for base, fields in SHAPES[noun]:
        yield base
        yield {**base, "colour": 1}
        for field in fields:
            yield from ({**base, field: value} for value in values(field))
        for field in (*OF_POLICIES["priority"], *OF_POLICIES["fair"]) if noun == "policy" else ():
            yield {**base, field: next(iter(OWN.get(field, ("5s",))))}
        yield from _mixtures(noun, base, fields)


def values(field: str) -> tuple[Any, ...]:
    return (*VALUES, *OWN.get(field, ()))


def _mixtures(noun: str, base: dict[str, Any], fields: tuple[str, ...]) -> Iterator[Any]:
    """Yield bodies with several fields, each of which is accepted alone."""
    accepted = {
        field: found for field in fields if (found := [one for one in values(field) if _mixes(noun, base, field, one)])
    }
    rng = random.Random(7)
    for _ in range(60 if len(accepted) > 1 else 0):
        chosen = rng.sample(sorted(accepted), rng.randint(2, len(accepted)))
        yield {**base, **{field: rng.choice(accepted[field]) for field in chosen}}


def _mixes(noun: str, base: dict[str, Any], field: str, value: Any) -> bool:
    """Return whether the first version accepted a value; it refused null within policies."""
    refused = value == {"kind": "priority", "ageing": None} or (
        noun == "policy" and value is None and field != "within"
    )
    return not refused and answer(noun, {**base, field: value})[0] == "accepted"


def _settings() -> Iterator[Any]:
    texts = ("1", "0", "-1", "70000", "5m", "soon", "a,b", "a=1,b=2", "true", "maybe", "debug", "dbug", "1.5", "x" * 99)
    plain = (True, 5, -1, 10**9, 1.5, ["a", "b"], {"a": "b"}, {"a": 1}, [1], None)
    for name in TABLE:
        yield from ({name: value} for value in (*texts, *plain))
