"""`concurrency`, `rate`, `burst`, `limits`, `sequence`: how many run at once, how often they start, in what order."""

import re
from collections.abc import Mapping
from typing import Any

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.limits import MOST_LIMITS, KeyLimit, Limit, check_limits
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.fields.values import a_key, a_list, a_text, an_int, an_object, kind_of, refuse_unknown

FIELDS = ("concurrency", "rate", "burst", "limits", "sequence")
OF_QUEUES = ("concurrency", "rate", "burst", "sequence")
MOST_AT_ONCE = 1_000_000
MOST_STARTS = 1_000_000
_RATE = re.compile(r"(\d{1,9})\s*(?:/|per)\s*(.+)")
_RATES = 'Write so many starts in a span: "100/1m", "5/s".'
_LIMITS = 'Write [{"key": "${params.customer}", "concurrency": 2, "rate": "10/1m", "burst": 5}].'
_SEQUENCE = 'Write the key of executions that run one after another: "${params.account}".'


def read_limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """These fields of a job, as its spec has them."""
    whole = _limit(given, "")
    limits = tuple(_key_limit(one, i) for i, one in enumerate(_listed(given.get("limits", []))))
    sequence = given.get("sequence")
    key = "" if sequence is None else a_key(_text(sequence, "sequence", _SEQUENCE), "sequence")
    check_limits(limits, key)
    return {"concurrency": whole.concurrency, "rate": whole.rate, "limits": limits, "sequence": key}


def read_limit(given: Mapping[str, Any]) -> Limit:
    """What a queue is limited to; it may run as a `sequence`."""
    limit = _limit(given, "")
    ordered = given.get("sequence", False)
    if not isinstance(ordered, bool):
        raise BadInput(f"sequence is {kind_of(ordered)}.", "It is true or false.", field="sequence")
    if ordered and limit.concurrency is not None and limit.concurrency > 1:
        raise BadInput(
            f"A queue that is a sequence runs one execution at a time, not {limit.concurrency}.",
            "Leave concurrency out, or sequence.",
            field="concurrency",
        )
    return Limit(concurrency=limit.concurrency, rate=limit.rate, sequence=ordered)


def _listed(value: Any) -> list[Any]:
    return a_list([value] if isinstance(value, dict) else value, "limits", _LIMITS, MOST_LIMITS)


def _key_limit(value: Any, index: int) -> KeyLimit:
    field = f"limits[{index}]"
    body = {name: part for name, part in an_object(value, field, _LIMITS).items() if part is not None}
    refuse_unknown(body, ("key", "concurrency", "rate", "burst"), "A limit", f"{field}.")
    if "key" not in body:
        raise BadInput(f"{field} does not say its key.", _LIMITS, field=f"{field}.key")
    limit = _limit(body, f"{field}.")
    if limit == Limit():
        raise BadInput(f"{field} limits nothing.", "Give it a concurrency, a rate, or both.", field=field)
    return KeyLimit(key=a_key(body["key"], f"{field}.key"), concurrency=limit.concurrency, rate=limit.rate)


def _limit(body: Mapping[str, Any], prefix: str) -> Limit:
    at_once = body.get("concurrency")
    if at_once is not None:
        remedy = "It is how many may run at once; pause the job or the queue to run none."
        at_once = an_int(at_once, f"{prefix}concurrency", 1, MOST_AT_ONCE, remedy)
    burst = body.get("burst")
    if burst is not None and body.get("rate") is None:
        raise BadInput("burst is given without a rate.", "Give the rate, or leave burst out.", field=f"{prefix}burst")
    if body.get("rate") is None:
        return Limit(concurrency=at_once)
    most = 1 if burst is None else an_int(burst, f"{prefix}burst", 1, MOST_STARTS)
    return Limit(concurrency=at_once, rate=parse_rate(body["rate"], f"{prefix}rate", most))


def parse_rate(value: Any, field: str, burst: int = 1) -> Rate:
    """Read "100/1m"."""
    found = _RATE.fullmatch(_text(value, field, _RATES).strip())
    if found is None:
        raise BadInput(f"{value!r} is not a rate.", _RATES, field=field)
    count, span = int(found[1]), found[2].strip()
    per = parse_duration(span if span[:1].isdigit() or span.startswith("P") else f"1{span}", field=field)
    if not 1 <= count <= MOST_STARTS or not SECOND // 1000 <= per <= 400 * DAY:
        raise BadInput(f"{value!r} is out of range.", "At least one start, in a millisecond to 400 days.", field=field)
    return Rate(count, per, burst)


def _text(value: Any, field: str, remedy: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{field} is {kind_of(value)}, not a text.", remedy, field=field)
    return a_text(value, field, most=1024, least=1)


def render_limit(limit: Limit) -> dict[str, Any]:
    """A limit in the API's spelling."""
    rate = limit.rate
    return {
        "concurrency": limit.concurrency,
        "rate": None if rate is None else f"{rate.count}/{format_duration(rate.per)}",
        "burst": None if rate is None or rate.burst == 1 else rate.burst,
    }


def render_limits(limit: Limit, limits: tuple[KeyLimit, ...], sequence: str) -> dict[str, Any]:
    """The fields of a job in the API's spelling."""
    return {
        **render_limit(limit),
        "limits": [{"key": one.key, **_shown(one)} for one in limits],
        "sequence": sequence or None,
    }


def _shown(limit: Limit) -> dict[str, Any]:
    return {name: value for name, value in render_limit(limit).items() if value is not None}
