"""Decisions that triggers with equal definitions, equal rules and the same due fire share."""

from msgspec import UNSET, Struct, UnsetType

from horae.env import Instant
from horae.model.triggers.decisions.decide import Decision, decide
from horae.model.triggers.decisions.lost_times import can_lose_times, first_lost_time
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger, previous_fire

DISTANT_PAST: Instant = -(1 << 63)


class _SharedDecision(Struct):
    """The decision for a trigger that was decided through `decided_through`; its first decided fire is `at`.

    It also holds for a trigger that was decided through another instant, if there is no fire between that instant and
    `at`.
    """

    decided_through: Instant
    at: Instant
    decision: Decision
    trigger: Trigger  # references that keep the objects alive, so that their ids stay unique
    rules: Rules
    since: Instant | UnsetType | None = UNSET  # the result of `_since`; computed on first use: most are not shared

    def is_for(self, decided_through: Instant) -> bool:
        """Return whether the decision holds for a trigger with this `decided_through`."""
        if decided_through == self.decided_through:
            return True
        if self.since is UNSET:
            self.since = _since(self.trigger, self.rules, self.at)
        return (
            self.since is not None
            and self.since <= min(decided_through, self.decided_through)
            and decided_through < self.at
        )


class SharedDecisions:
    """Decides triggers at one instant and reuses a decision for triggers with the same definition and rules."""

    def __init__(self, now: Instant, limit: int) -> None:
        self._now, self._limit = now, limit
        self._made: dict[tuple[int, int, bool, int], _SharedDecision] = {}

    def decide(
        self, trigger: Trigger, rules: Rules, decided_through: Instant, fired: int, busy: bool, waiting: int
    ) -> Decision:
        """Return the same as the function `decide`, from an earlier decision if no fire makes a difference."""
        key = id(trigger), id(rules), busy, waiting
        made = self._made.get(key)
        if made is not None and made.is_for(decided_through):
            return made.decision
        decision = decide(
            trigger, rules, decided_through, self._now, self._limit, fired=fired, busy=busy, waiting=waiting
        )
        if rules.max_fires is None and decision.ledger:
            self._made[key] = _SharedDecision(decided_through, decision.ledger[0].first, decision, trigger, rules)
        return decision


def _since(trigger: Trigger, rules: Rules, at: Instant) -> Instant | None:
    """Return the instant from which on a trigger has no fire and no skipped wall time before `at`.

    Return None if a clock change skipped wall times in between, so that no such instant is known.
    """
    since = previous_fire(trigger, at)
    if not can_lose_times(trigger):
        return DISTANT_PAST if since is None else since
    return since if since is None or first_lost_time(trigger, rules, since, at + 1) is None else None
