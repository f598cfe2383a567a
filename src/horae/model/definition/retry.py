"""`retries` and `retry`: how often and how soon the job's own failures are tried again."""

from typing import Any

from horae.env import Micros
from horae.errors import BadInput
from horae.model.definition.values import (
    a_duration,
    a_list,
    a_number,
    a_text,
    an_int,
    an_object,
    refuse_unknown,
)
from horae.model.duration import DAY, format_duration
from horae.model.retry import RetryPolicy

MOST_RETRIES = 1000
MOST_DELAYS = 100
LONGEST_DELAY: Micros = 365 * DAY
_DEFAULT = RetryPolicy()
_GROWING = ("delay", "factor", "max")
_ACCEPTED = (
    'Write {"delay": "10s"} for a fixed delay, {"delay": "1s", "factor": 2, "max": "5m", "jitter": 0.1} for a growing '
    'one, or ["1s", "10s", "1m"].'
)


def parse_retry(retries: Any, retry: Any) -> RetryPolicy:
    """Read both fields. A fixed delay and a list have no jitter unless given; a list alone gives as many retries."""
    given = {"delays": retry} if isinstance(retry, list) else an_object(retry or {}, "retry", _ACCEPTED)
    refuse_unknown(given, ("delay", "factor", "max", "jitter", "delays", "permanent"), "retry", "retry.")
    permanent = _permanent(given.get("permanent") or [])
    if given.get("delays") is not None:
        return _listed(given, retries, permanent)
    count = 0 if retries is None else _retries(retries)
    if not any(name in given for name in (*_GROWING, "jitter")):
        return RetryPolicy(retries=count, permanent=permanent)
    return _growing(given, count, permanent)


def _retries(value: Any) -> int:
    return an_int(value, "retries", 0, MOST_RETRIES, f"It counts further tries after the first: 0 to {MOST_RETRIES}.")


def _listed(given: dict[str, Any], retries: Any, permanent: tuple[str, ...]) -> RetryPolicy:
    mixed = [name for name in _GROWING if name in given]
    if mixed:
        raise BadInput(f"retry has delays and {mixed[0]}.", _ACCEPTED, field=f"retry.{mixed[0]}")
    listed = a_list(given["delays"], "retry.delays", _ACCEPTED, MOST_DELAYS)
    if not listed:
        raise BadInput("retry lists no delay.", _ACCEPTED, field="retry")
    delays = tuple(a_duration(delay, f"retry[{i}]", 0, LONGEST_DELAY) for i, delay in enumerate(listed))
    return RetryPolicy(
        retries=len(delays) if retries is None else _retries(retries),
        jitter=_jitter(given, 0.0),
        delays=delays,
        permanent=permanent,
    )


def _growing(given: dict[str, Any], retries: int, permanent: tuple[str, ...]) -> RetryPolicy:
    """A delay alone is fixed; a factor, or a bound, makes it grow."""
    fixed = "delay" in given and "factor" not in given and "max" not in given
    delay = a_duration(given.get("delay", "1s"), "retry.delay", 0, LONGEST_DELAY)
    bound = a_duration(given["max"], "retry.max", 0, LONGEST_DELAY) if "max" in given else max(delay, _DEFAULT.max)
    if bound < delay:
        raise BadInput("retry.max is shorter than retry.delay.", "Give a longer max.", field="retry.max")
    return RetryPolicy(
        retries=retries,
        delay=delay,
        factor=a_number(given.get("factor", 1 if fixed else _DEFAULT.factor), "retry.factor", 1, 100),
        max=bound,
        jitter=_jitter(given, 0.0 if fixed else _DEFAULT.jitter),
        permanent=permanent,
    )


def _jitter(given: dict[str, Any], default: float) -> float:
    return a_number(given.get("jitter", default), "retry.jitter", 0, 1)


def _permanent(value: Any) -> tuple[str, ...]:
    names = a_list(value, "retry.permanent", 'Write the types of errors: ["ValueError"].', 64)
    return tuple(a_text(name, f"retry.permanent[{i}]", most=256, least=1) for i, name in enumerate(names))


def render_retry(policy: RetryPolicy) -> Any:
    """The `retry` field that reads as this policy."""
    permanent = {"permanent": list(policy.permanent)} if policy.permanent else {}
    if policy.delays:
        delays = [format_duration(delay) for delay in policy.delays]
        return {"delays": delays, "jitter": policy.jitter} | permanent if policy.jitter or permanent else delays
    growing = {"delay": format_duration(policy.delay), "factor": policy.factor, "max": format_duration(policy.max)}
    return {**growing, "jitter": policy.jitter, **permanent}
