"""The number of nominal fires between two instants. The cost grows with the number of months, not of fires."""

from horae.env import Instant
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger


def fires_left(trigger: Trigger, rules: Rules, fired: int, decided_through: Instant, at: Instant) -> int | None:
    """Return how many fires after an instant `max_fires` still allows, or None without a limit.

    `fired` is the number of fires that ran up to `decided_through`. All fires from there to the instant are assumed to
    run.
    """
    if rules.max_fires is None or at < decided_through:
        return rules.max_fires
    return max(0, rules.max_fires - fired - count_fires(trigger, rules, decided_through, at + 1))


def count_fires(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> int:
    """Count the nominal fires strictly between two instants, within the bounds of the rules."""
    if rules.start_at is not None:
        after = max(after, rules.start_at - 1)
    if rules.end_at is not None:
        before = min(before, rules.end_at)
    if after >= before:
        return 0
    return trigger.count(after, before)
