"""Decisions that triggers share: at one instant those of one definition, by the same rules, due for the same fire."""

from msgspec import Struct

from horae.env import Instant
from horae.model.trigger.decide import Decision, decide
from horae.model.trigger.lost import first_lost
from horae.model.trigger.rules import Rules
from horae.model.trigger.values import Trigger


class _Made(Struct, frozen=True):
    """A decision for whoever had decided from `since` on, to before `at`."""

    since: Instant
    at: Instant
    decision: Decision
    trigger: Trigger  # as long as these are here nothing else has their identity
    rules: Rules


class Alike:
    """Decides triggers at one instant; what was decided for one holds for those that are the same values."""

    def __init__(self, now: Instant, limit: int) -> None:
        self._now, self._limit = now, limit
        self._made: dict[tuple[int, int], _Made] = {}

    def decide(
        self, trigger: Trigger, rules: Rules, decided_through: Instant, *, fired: int, busy: bool, waiting: int
    ) -> Decision:
        """What `decide` says: between two nominal fires it does not matter how far a trigger had decided."""
        if busy or waiting or rules.max_fires is not None:
            return decide(
                trigger, rules, decided_through, self._now, self._limit, fired=fired, busy=busy, waiting=waiting
            )
        key = id(trigger), id(rules)
        made = self._made.get(key)
        if made is not None and made.since <= decided_through < made.at:
            return made.decision
        decision = decide(trigger, rules, decided_through, self._now, self._limit, fired=fired)
        if len(decision.ledger) == len(decision.fires) == 1:
            (fire,) = decision.fires
            if fire.since is not None and first_lost(trigger, rules, fire.since, fire.at) is None:
                self._made[key] = _Made(fire.since, fire.at, decision, trigger, rules)
        return decision
