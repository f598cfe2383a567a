"""`retries` and `retry`: the failures to retry, the number of retries and their delays."""

from typing import Any

from msgspec import structs

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.definitions.failure_rules import ACCEPTED, compile_rule
from horae.model.definitions.retry import BUDGETS, MOST_RETRIES, RetryPolicy
from horae.model.fields.values import a_duration, a_list, a_number, a_text, an_int, an_object, refuse_unknown

MOST_RULES = 64
MOST_DELAYS = 100
LONGEST_DELAY: Micros = 365 * DAY
_DEFAULT = RetryPolicy()
_GROWING = ("delay", "factor", "max")
_ACCEPTED = (
    'Write {"delay": "10s"} for a fixed delay, {"delay": "1s", "factor": 2, "max": "5m", "jitter": 0.1} for a growing '
    'one, or ["1s", "10s", "1m"].'
)


def parse_retry(retries: Any, retry: Any) -> RetryPolicy:
    """Read `retries` and `retry`.

    A fixed delay and a list of delays have no jitter unless it is given. If `retries` is not given, it is the number of
    listed delays.
    """
    retry = {} if retry is None else retry
    given = {"delays": retry} if isinstance(retry, list) else an_object(retry, "retry", _ACCEPTED)
    refuse_unknown(given, (*_GROWING, "jitter", "delays", "budgets", "retryOn", "giveUpOn"), "retry", "retry.")
    retry_on, give_up_on = _rules(given.get("retryOn"), "retryOn"), _rules(given.get("giveUpOn"), "giveUpOn")
    both = [rule for rule in retry_on if rule in give_up_on]
    if both:
        detail = f"{both[0]!r} is in retryOn and in giveUpOn."
        raise BadInput(detail, "Remove it from one of them.", field="retry.giveUpOn")
    budgets = given.get("budgets")
    budgets = BUDGETS.read({} if budgets is None else budgets, "retry.budgets")
    listed_at = "retry" if isinstance(retry, list) else "retry.delays"
    return structs.replace(_pace(given, retries, listed_at), budgets=budgets, retry_on=retry_on, give_up_on=give_up_on)


def _pace(given: dict[str, Any], retries: Any, listed_at: str) -> RetryPolicy:
    """Read the number of retries and their delays. `listed_at` is the field that lists delays."""
    if given.get("delays") is not None:
        return _listed(given, retries, listed_at)
    count = 0 if retries is None else _retries(retries)
    if not any(name in given for name in (*_GROWING, "jitter")):
        return RetryPolicy(retries=count)
    return _growing(given, count)


def _rules(value: Any, name: str) -> tuple[str, ...]:
    """Read rules about failures, a list or a single one."""
    value = [] if value is None else [value] if isinstance(value, str) else value
    rules = a_list(value, f"retry.{name}", ACCEPTED, MOST_RULES)
    for i, rule in enumerate(rules):
        field = f"retry.{name}[{i}]"
        try:
            compile_rule(a_text(rule, field, most=256, least=1))
        except ValueError as error:
            raise BadInput(f"{error}.", ACCEPTED, field=field) from None
    return tuple(dict.fromkeys(rules))


def _retries(value: Any) -> int:
    return an_int(
        value, "retries", 0, MOST_RETRIES, f"Give the number of further tries after the first: 0 to {MOST_RETRIES}."
    )


def _listed(given: dict[str, Any], retries: Any, at: str) -> RetryPolicy:
    mixed = [name for name in _GROWING if name in given]
    if mixed:
        raise BadInput(f"retry cannot have both delays and {mixed[0]}.", _ACCEPTED, field=f"retry.{mixed[0]}")
    listed = a_list(given["delays"], at, _ACCEPTED, MOST_DELAYS)
    if not listed:
        raise BadInput(f"{at} lists no delay.", _ACCEPTED, field=at)
    delays = tuple(a_duration(delay, f"{at}[{i}]", 0, LONGEST_DELAY) for i, delay in enumerate(listed))
    return RetryPolicy(
        retries=len(delays) if retries is None else _retries(retries),
        jitter=_jitter(given, 0.0),
        delays=delays,
    )


def _growing(given: dict[str, Any], retries: int) -> RetryPolicy:
    """Read a delay. It is fixed when it is given alone; it grows when `factor` or `max` is given, too."""
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
    )


def _jitter(given: dict[str, Any], default: float) -> float:
    return a_number(given.get("jitter", default), "retry.jitter", 0, 1)


def render_retry(policy: RetryPolicy) -> Any:
    """Write the `retry` field of a policy."""
    rules = {
        "budgets": BUDGETS.write(policy.budgets),
        "retryOn": list(policy.retry_on),
        "giveUpOn": list(policy.give_up_on),
    }
    given = {name: value for name, value in rules.items() if value}
    if policy.delays:
        delays = [format_duration(delay) for delay in policy.delays]
        return {"delays": delays, "jitter": policy.jitter} | given if policy.jitter or given else delays
    growing = {"delay": format_duration(policy.delay), "factor": policy.factor, "max": format_duration(policy.max)}
    return {**growing, "jitter": policy.jitter, **given}
