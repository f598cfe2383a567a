"""The rotation of open alerts: if a rule has very many, only some of them are checked again in each round."""

from collections.abc import Sequence

from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.store.notice_writer import Alert
from horae.features.alerts.store.rules import StoredRule

MOST = 1000  # alerts of a rule that are checked in one round


class AlertRotation:
    """Selects the open alerts to check, and remembers for each rule where the next round begins."""

    def __init__(self) -> None:
        self._after: dict[tuple[int, str], str] = {}

    def select(self, stored: StoredRule, opened: Sequence[Alert]) -> tuple[Sequence[Alert], list[RuleFinding]]:
        """Return the alerts to check now, and for each other alert an unchanged finding, so that it stays open."""
        key = stored.namespace, stored.name
        if len(opened) <= MOST:
            self._after.pop(key, None)
            return opened, []
        after = self._after.get(key, "")
        in_turn = sorted(opened, key=lambda one: (one.subject <= after, one.subject))
        self._after[key] = in_turn[MOST - 1].subject
        return in_turn[:MOST], [_unchanged(one) for one in in_turn[MOST:]]


def _unchanged(alert: Alert) -> RuleFinding:
    return RuleFinding(subject=alert.subject, message=alert.message, job=alert.job, execution=alert.execution)
