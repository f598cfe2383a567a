"""How many nominal fires lie between two instants, at the cost of the answer's length in months."""

from horae.env import Instant
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger


def fires_left(trigger: Trigger, rules: Rules, fired: int, decided: Instant, at: Instant) -> int | None:
    """How many fires after an instant `max_fires` still allows; None for any number.

    `fired` ran of those until `decided`. Those from then to the instant are taken to run.
    """
    if rules.max_fires is None or at < decided:
        return rules.max_fires
    return max(0, rules.max_fires - fired - count_fires(trigger, rules, decided, at + 1))


def count_fires(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> int:
    """How many nominal fires lie strictly between two instants within the rules' bounds."""
    if rules.start_at is not None:
        after = max(after, rules.start_at - 1)
    if rules.end_at is not None:
        before = min(before, rules.end_at)
    if after >= before:
        return 0
    return trigger.count(after, before)
