"""The number of nominal fires between two instants. The cost grows with the number of months, not of fires."""

from horae.env import Instant
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger


def count_fires(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> int:
    """Count the nominal fires strictly between two instants, within the bounds of the rules."""
    if rules.start_at is not None:
        after = max(after, rules.start_at - 1)
    if rules.end_at is not None:
        before = min(before, rules.end_at)
    if after >= before:
        return 0
    return trigger.count(after, before)
