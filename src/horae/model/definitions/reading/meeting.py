"""`unique`, `debounce`, `batch` and `cache`: what the submissions of a job share."""

from collections.abc import Mapping
from typing import Any

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.executions.deduplication import KEEPS, MOST_BATCH, Batch, Cache, Debounce, MeetingRule, Unique
from horae.model.fields.values import a_duration, a_key, an_int, an_object, one_of, refuse_unknown

FIELDS = ("unique", "debounce", "batch", "cache")
LIVE = "live"
_LEAST = SECOND // 1000
_LONG = 400 * DAY
_UNIQUE = 'Write {"key": "${params.customer}", "for": "live"}, with a span such as "24h" instead of "live", or true.'
_DEBOUNCE = 'Write {"key": "${params.page}", "wait": "5s", "max": "1m", "keep": "latest"}.'
_BATCH = 'Write {"size": 100, "wait": "1s", "key": "${params.customer}"}.'
_CACHE = 'Write {"ttl": "1h", "key": "${params.day}"}; without a key equal params have the same result.'
# What two of them would say of one submission cannot both be so.
_APART = (
    ("debounce", "batch"), ("unique", "debounce"), ("unique", "batch"), ("cache", "debounce"), ("cache", "batch"),
    ("sequence", "debounce"), ("sequence", "batch"),
)  # fmt: skip


def read_meetings(given: Mapping[str, Any]) -> dict[str, Any]:
    """These fields of a job, as its spec has them."""
    for one, other in _APART:
        if one in given and other in given:
            remedy = "Leave one of them out: both say what becomes of a submission that is like one before."
            if one == "sequence":
                remedy = "Leave one of them out: a sequence runs every submission, in its order, and does not join any."
            raise BadInput(f"A job cannot have {one} and {other}.", remedy, field=other)
    return {name: _READERS[name](given[name]) for name in FIELDS if name in given}


def _unique(value: Any) -> Unique:
    body = {} if value is True else an_object(value, "unique", _UNIQUE)
    refuse_unknown(body, ("key", "for", "keep"), "unique", "unique.")
    span = body.get("for", LIVE)
    keep: Any = one_of(body.get("keep", "first"), "unique.keep", KEEPS)
    length = None if span == LIVE else a_duration(span, "unique.for", SECOND, _LONG)
    return Unique(key=_key(body, "unique"), keep=keep, span=length)


def _debounce(value: Any) -> Debounce:
    body = _with(value, "debounce", "wait", _DEBOUNCE)
    refuse_unknown(body, ("key", "wait", "max", "keep"), "debounce", "debounce.")
    keep: Any = one_of(body.get("keep", "latest"), "debounce.keep", KEEPS)
    wait = a_duration(body["wait"], "debounce.wait", _LEAST, DAY)
    most = body.get("max")
    return Debounce(
        key=_key(body, "debounce"), wait=wait, keep=keep,
        most=None if most is None else a_duration(most, "debounce.max", wait, 30 * DAY),
    )  # fmt: skip


def _batch(value: Any) -> Batch:
    body = _with(value, "batch", "size", _BATCH)
    refuse_unknown(body, ("key", "size", "wait"), "batch", "batch.")
    size = an_int(body["size"], "batch.size", 1, MOST_BATCH)
    return Batch(key=_key(body, "batch"), size=size, wait=a_duration(body.get("wait", "1s"), "batch.wait", _LEAST, DAY))


def _cache(value: Any) -> Cache:
    body = _with(value, "cache", "ttl", _CACHE)
    refuse_unknown(body, ("key", "ttl"), "cache", "cache.")
    return Cache(key=_key(body, "cache"), ttl=a_duration(body["ttl"], "cache.ttl", SECOND, _LONG))


_READERS: dict[str, Any] = {"unique": _unique, "debounce": _debounce, "batch": _batch, "cache": _cache}


def _with(value: Any, field: str, needed: str, remedy: str) -> dict[str, Any]:
    body = an_object(value, field, remedy)
    if body.get(needed) is None:
        raise BadInput(f"{field} does not say its {needed}.", remedy, field=f"{field}.{needed}")
    return body


def _key(body: Mapping[str, Any], field: str) -> str:
    return "" if body.get("key") is None else a_key(body["key"], f"{field}.key")


def render_meeting(rule: MeetingRule | None) -> dict[str, Any] | None:
    """A rule in the API's spelling."""
    if rule is None:
        return None
    shown: dict[str, Any] = {"key": rule.key} if rule.key else {}
    if isinstance(rule, Unique):
        return {**shown, "for": LIVE if rule.span is None else format_duration(rule.span), "keep": rule.keep}
    if isinstance(rule, Debounce):
        most = {} if rule.most is None else {"max": format_duration(rule.most)}
        return {**shown, "wait": format_duration(rule.wait), **most, "keep": rule.keep}
    if isinstance(rule, Batch):
        return {**shown, "size": rule.size, "wait": format_duration(rule.wait)}
    return {**shown, "ttl": format_duration(rule.ttl)}
