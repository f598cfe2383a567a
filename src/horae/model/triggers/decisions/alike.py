"""Decisions that triggers share: at one instant those of one definition, by the same rules, due for the same fire."""

from msgspec import UNSET, Struct, UnsetType

from horae.env import Instant
from horae.model.triggers.decisions.decide import Decision, decide
from horae.model.triggers.decisions.lost import can_lose, first_lost
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger, previous_fire

EVER: Instant = -(1 << 63)


class _Made(Struct):
    """A decision for one that had decided so far, and for whoever had decided nothing else before `at`."""

    so_far: Instant
    at: Instant
    decision: Decision
    trigger: Trigger  # as long as these are here nothing else has their identity
    rules: Rules
    since: Instant | UnsetType | None = UNSET  # looked for when it is asked for: most have nobody alike

    def is_for(self, decided_through: Instant) -> bool:
        """Whether it holds for one that had decided so far."""
        if decided_through == self.so_far:
            return True
        if self.since is UNSET:
            self.since = _since(self.trigger, self.rules, self.at)
        return self.since is not None and self.since <= min(decided_through, self.so_far) and decided_through < self.at


class Alike:
    """Decides triggers at one instant; what was decided for one holds for those that are the same values."""

    def __init__(self, now: Instant, limit: int) -> None:
        self._now, self._limit = now, limit
        self._made: dict[tuple[int, int, bool, int], _Made] = {}

    def decide(
        self, trigger: Trigger, rules: Rules, decided_through: Instant, fired: int, busy: bool, waiting: int
    ) -> Decision:
        """What `decide` says: between two nominal fires it does not matter how far a trigger had decided."""
        key = id(trigger), id(rules), busy, waiting
        made = self._made.get(key)
        if made is not None and made.is_for(decided_through):
            return made.decision
        decision = decide(
            trigger, rules, decided_through, self._now, self._limit, fired=fired, busy=busy, waiting=waiting
        )
        if rules.max_fires is None and decision.ledger:
            self._made[key] = _Made(decided_through, decision.ledger[0].first, decision, trigger, rules)
        return decision


def _since(trigger: Trigger, rules: Rules, at: Instant) -> Instant | None:
    """From when on a trigger has nothing to tell before this; None where that is not known."""
    since = previous_fire(trigger, at)
    if not can_lose(trigger):
        return EVER if since is None else since
    return since if since is None or first_lost(trigger, rules, since, at + 1) is None else None
