"""Triggers and calendars, valid and refused: each field with values of all sorts, with each kind, and mixtures."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.model.fields.corpus import VALUES

MIXTURES = 600
TIMES: tuple[dict[str, Any], ...] = ({"cron": "0 9 * * MON-FRI"}, {"every": "5m"}, {"at": "2030-01-01T00:00:00Z"})
OUTSIDE: tuple[dict[str, Any], ...] = ({"event": "upload"}, {"webhook": True}, {"watch": "s3://bucket/in/"})
OF_KINDS = (
    *("cron", "timezone", "dialect", "dstGap", "dstOverlap", "every", "anchor", "at"),
    *("event", "filter", "webhook", "watch", "interval", "existing", "settle"),
)
OF_ALL = (
    *("misfire", "overlap", "startAt", "endAt", "maxFires", "jitter", "spread", "grace", "within"),
    *("calendar", "calendars", "outside", "params", "paused", "name"),
)
INSTANTS = (
    "2030-01-01T00:00:00Z",
    "2031-06-01T12:00:00+02:00",
    "2020-01-01T00:00:00Z",
    "2030-01-01T00:00:00",
    "2030-01-01",
)
SPANS = ("1s", "5m", "1h", "1d", "25h", "500d", "100ms", "99ms", "0s", 90, "PT1H", "-5m")
OWN: dict[str, tuple[Any, ...]] = {
    "cron": (
        *("0 9 * * *", "  0  9 * * *", "@daily", "@every 5m", "@every", "@every soon", "H H * * *", "30 2 * * *"),
        *("61 * * * *", "0 0 9 ? * 2#1", "0 0 9 * * ? 2020", "0 9 * * *\n", "TZ=UTC 0 9 * * *", "0 0 30 2 *"),
    ),
    "timezone": ("UTC", "Europe/Paris", "Europe/Pariss", "Paris", "america/new_york", "x" * 200),
    "dialect": ("unix", "quartz", "vixie"),
    "dstGap": ("shift", "skip", "first"),
    "dstOverlap": ("first", "second", "both", "skip"),
    **dict.fromkeys(("every", "jitter", "spread", "grace", "within", "interval", "settle"), SPANS),
    **dict.fromkeys(("anchor", "at", "startAt", "endAt"), INSTANTS),
    "event": ("orders/paid", "a b", "x" * 129),
    "filter": ("${event.payload.size > 10}", "${params.x}", "size > 1", "${event.", "${true}${true}", "x" * 9000),
    "webhook": (False, {"verify": "none"}, {"verify": "signature"}, {"verify": "md5"}, {"verify": None}, {"x": 1}),
    "watch": (
        *("/srv/inbox/", "file:///srv/inbox", "file://host/x", "/", "s3://bucket/in", "gs://bucket", "s3://Bad_B!/x"),
        *("s3://", "ftp://x/y", "inbox", "s3://b/\x00", "/srv/" + "x" * 3000),
    ),
    "existing": ("ignore", "fire", "fir"),
    "misfire": (
        *("skip", "latest", "all", "alll", {"all": 10}, {"all": 0}, {"all": 1001}, {"all": "5"}, {"all": True}),
        *({"window": "1h"}, {"window": "soon"}, {"window": "1h", "all": 3}, {"latest": 1}),
    ),
    "overlap": (
        *("skip", "allow", "queueOne", "queueAll", "cancelOther", "queue", {"queueAll": 10}, {"queueAll": 0}),
        *({"queueAll": 1001}, {"queueAll": "5"}, {"skip": 1}, {"queueAll": 1, "skip": 2}),
    ),
    "maxFires": (1, 10, 2**31 - 1, 2**31, 1.0),
    "calendar": ("work", "work days", "x" * 200),
    "calendars": (["work", "office"], ["work", "work"], ["work"], ["a b"], ["x"] * 17, "work"),
    "outside": ("skip", "postpone", "advance", "later"),
    "params": (
        *({"day": "${fire.at}"}, {"key": "${event.payload.key}"}, {"x": "${params.y}"}, {"x": "${"}, {"x": "${nope}"}),
        {"deep": {"list": [1, "${interval.start}"]}},
    ),
    "paused": (True, False, "yes"),
    "name": ("nightly", "schedule", "a b"),
}  # fmt: skip
CALENDARS: tuple[dict[str, Any], ...] = (
    {"country": "FR", "timezone": "Europe/Paris"},
    {"exchange": "XNYS", "timezone": "America/New_York"},
    *({"dates": ["2026-12-24"]}, {"hours": "MON-FRI 09:00-17:00"}),
    {"windows": ["2026-12-01T22:00:00Z/2026-12-02T02:00:00Z"]},
    *({"calendar": "work"}, {"any": ["work", {"dates": "12-25"}]}, {"all": ["work", {"hours": "09:00-17:00"}]}),
)
OF_CALENDARS = (
    *("country", "subdivision", "exchange", "dates", "hours", "windows", "calendar", "any", "all"),
    *("timezone", "except", "name", "description", "definition"),
)
OWN_OF_CALENDARS: dict[str, tuple[Any, ...]] = {
    "country": ("FR", "fr", "DE", "France", " US "),
    "subdivision": ("BY", "DE-BY", "FR-X"),
    "exchange": ("XNYS", "xecb"),
    "dates": (
        *("2026-12-24", "12-25", "--12-25", "02-30", "2026-02-30", "2026-12-24/2027-01-02", "2027-01-02/2026-12-24"),
        *(["2026-12-24", "2026-12-25", "12-25", "01-01"], ["1969-01-01"], ["2026-12-24", 5], ["2026-12-24"] * 5000),
    ),
    "hours": (
        *("MON-FRI 09:00-17:00", "SAT,SUN 22:00-02:00", "09:00-17:00", "09:00-09:00", "24:00-25:00", "9-17"),
        *(
            "MOO 09:00-17:00",
            "Monday 09:00-17:00",
            "FRI-MON 00:00-24:00",
            ["09:00-10:00"] * 101,
            ["MON 09:00:30-10:00"],
        ),
    ),
    "windows": (
        *("2026-12-01T22:00:00Z/2026-12-02T02:00:00Z", "2026-12-02T22:00:00Z/2026-12-01T02:00:00Z", "2026-12-01/now"),
        *("2026-12-01T22:00:00Z", ["x/y"]),
    ),
    "calendar": ("work", "a b"),
    **dict.fromkeys(
        ("any", "all", "except"),
        (
            *(["work"], "work", {"hours": "09:00-17:00"}, [{"hours": "9"}], [{"dates": "12-25"}, "work"], ["w"] * 65),
            *([{"all": [{"any": ["work", {"country": "FR"}]}]}], [{"dates": "12-25", "timezone": "Asia/Tokyo"}], [5]),
        ),
    ),
    "timezone": ("UTC", "Europe/Paris", "Europe/Pariss", "Paris"),
    "description": ("when we work", "x" * 5000, "a\x00b"),
    "definition": ({"hours": "09:00-17:00"}, {"hours": "9"}, {"name": "x"}),
    "name": ("office", "other"),
}


def triggers() -> Iterator[Any]:
    """Yield each trigger, always the same in the same order."""
    yield from ("0 9 * * *", "@hourly", "nonsense", "@every 5m", "@every 1ms", "", 5, None, [], {}, {1: 2}, {"zzz": 1})
    yield from ({"evry": "5m"}, {"nmae": "x", "every": "5m"}, {"every": "5m", "max_fires": 3}, {"timezone": "UTC"})
    for base in (*TIMES, *OUTSIDE):
        yield base
        yield {**base, "colour": 1}
        yield from ({**base, **other} for other in (*TIMES, *OUTSIDE) if other != base)
    for base in (*TIMES, *OUTSIDE):
        for field in (*OF_KINDS, *OF_ALL):
            values = VALUES if field in base or _belongs(field, base) else (None,)
            yield from ({**base, field: value} for value in (*values, *OWN.get(field, ())))
    yield from _pairs()
    yield from _mixtures((*TIMES, *OUTSIDE), (*OF_KINDS, *OF_ALL), OWN, _answer_of_trigger)


def _belongs(field: str, base: Mapping[str, Any]) -> bool:
    """Return whether a field is tried with values of all sorts here: each one once, rules with cron and with event."""
    if field in OF_ALL:
        return "cron" in base or "event" in base
    return OF_KINDS.index(field) in {
        "cron": range(5), "every": range(5, 7), "at": range(7, 8), "event": range(8, 11), "watch": range(11, 15),
        "webhook": range(0),
    }[next(iter(base))]  # fmt: skip


def _pairs() -> Iterator[Any]:
    """Yield combinations of two fields that are decided together."""
    for base in TIMES:
        yield {**base, "startAt": "2031-01-01T00:00:00Z", "endAt": "2030-01-01T00:00:00Z"}
        yield {**base, "startAt": "2029-01-01T00:00:00Z", "endAt": "2030-01-01T00:00:00Z"}
        yield {**base, "spread": "1h", "jitter": "1h"}
        yield {**base, "calendar": "work", "calendars": ["work"]}
        yield from ({**base, "calendar": "work", "outside": outside} for outside in OWN["outside"])
        yield {**base, "calendars": ["work", "office"], "outside": "postpone"}
        yield {**base, "misfire": {"all": 10}, "overlap": {"queueAll": 10}, "grace": "1m"}
    for base in OUTSIDE:
        yield from ({**base, "calendar": "work", "outside": outside} for outside in OWN["outside"])
        yield {**base, "misfire": "all", "grace": "5m"}
    yield {"event": "upload", "webhook": True, "filter": "${event.payload.size > 10}"}
    yield from ({"cron": "30 2 * * *", "timezone": "Europe/Paris", "dstGap": gap} for gap in ("shift", "skip"))
    yield {"cron": "0 0 9 ? * 2#1 2027-2030", "dialect": "quartz", "timezone": "Asia/Tokyo", "dstOverlap": "both"}
    yield {"cron": "@every 5m", "timezone": "UTC"}


def calendars() -> Iterator[Any]:
    """Yield each calendar, always the same in the same order."""
    yield from ("work", "a b", 5, None, [], {}, {1: 2}, {"zzz": 1}, {"timezone": "UTC"}, {"subdivision": "BY"})
    for base in CALENDARS:
        yield base
        yield {**base, "colour": 1}
        yield from ({**base, **other} for other in CALENDARS if other != base)
        yield {"definition": base}
    for field in OF_CALENDARS:
        for value in (*VALUES, *OWN_OF_CALENDARS.get(field, ())):
            yield {field: value}
            yield {**CALENDARS[3 if field != "subdivision" else 0], field: value}
    deep: Any = "work"
    for _ in range(12):
        deep = {"any": [deep]}
        yield deep
    yield {"any": [{"all": ["a"] * 60} for _ in range(3)]}
    yield from _mixtures(CALENDARS, OF_CALENDARS, OWN_OF_CALENDARS, _answer_of_calendar)


def _mixtures(
    bases: tuple[dict[str, Any], ...],
    fields: tuple[str, ...],
    own: Mapping[str, tuple[Any, ...]],
    answer: Callable[[Any], list[Any]],
) -> Iterator[Any]:
    """Yield bodies with several fields that are each accepted alone, some with one that is not."""
    rng = random.Random(11)
    accepted = []
    for base in bases:
        good = {field: [v for v in own[field] if answer({**base, field: v})[0] == "accepted"] for field in fields}
        accepted.append({field: values for field, values in good.items() if values})
    for n in range(MIXTURES):
        which = rng.randrange(len(bases))
        good = accepted[which]
        chosen = rng.sample(sorted(good), min(len(good), rng.randint(2, 6)))
        mixed = {**bases[which], **{field: rng.choice(good[field]) for field in chosen}}
        if n % 5 == 0:
            field = rng.choice(fields)
            mixed[field] = rng.choice(own[field])
        yield mixed


def _answer_of_trigger(body: Any) -> list[Any]:
    from tests.model.fields.trigger_answers import answer

    return answer("triggers", body)


def _answer_of_calendar(body: Any) -> list[Any]:
    from tests.model.fields.trigger_answers import answer

    return answer("calendars", body)
