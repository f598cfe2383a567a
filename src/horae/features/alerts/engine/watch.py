"""The watch: every five seconds one server evaluates all rules, and writes the changed alerts with their notices.

The server that holds the duty evaluates. Two servers at once do no harm: the row of a rule is locked while its alerts
change, and at most one alert is open per rule and subject.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env
from horae.errors import StoreUnavailable
from horae.features.alerts.engine.deadlines import EstimateStart, NearDeadlines, StartEstimates
from horae.features.alerts.engine.learned import UsualDurations
from horae.features.alerts.engine.looks import Evaluation
from horae.features.alerts.engine.suspects import FailedJobs, RulesByNamespace
from horae.features.alerts.engine.turns import AlertRotation
from horae.features.alerts.model.rule import FailuresInARow, MissingSuccess
from horae.features.alerts.store import alerts
from horae.features.alerts.store import notices as alert_notices
from horae.features.alerts.store import rules as alert_rules
from horae.features.alerts.store.letters import Alert
from horae.features.alerts.store.rules import StoredRule
from horae.model.base.duration import DAY
from horae.model.base.event import Event
from horae.store.contract import Store
from horae.store.executions.reads import housekeeping

LOOK = 5.0  # seconds
TERM = 20 * SECOND  # how long the duty is held without renewal
KEPT = 30 * DAY  # how long ended alerts and settled notices are stored
FORGET_EVERY = 3600.0
FORGET = 1000
SLOW = 60.0
MOST_LATER = 10_000
START = (0, "")
log = structlog.get_logger("horae.engine")


class AlertWatch:
    """The service that evaluates alert rules."""

    name = "alert-watch"

    def __init__(
        self,
        env: Env,
        store: Store,
        node: UUID,
        hints: Hints,
        clock: ClockWatch,
        starts: EstimateStart,
        notices_made: Callable[[], object],
    ) -> None:
        self._env, self._store, self._node, self._hints, self._clock = env, store, node, hints, clock
        self._learned, self._suspects = UsualDurations(env, store), FailedJobs(env, store)
        self._starts, self._nearing, self._turns = (
            StartEstimates(env, starts),
            NearDeadlines(env, store),
            AlertRotation(),
        )
        self._epoch = 0  # the epoch of the duty when this server held it last
        self._renew_at = 0.0
        self._looked: set[tuple[int, str, int]] = set()  # the revisions of rules that were evaluated since
        self._forget_at = 0.0
        self._later: dict[tuple[int, str, int], float] = {}  # the next evaluation of rules that need few of them
        self.fired = self.recovered = self.failed = 0  # counted on this server
        self._notices_made = notices_made
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Evaluate all rules once, if there are any and this server gets the duty."""
        rules = await self._rules()
        if not rules or not self._clock.trusted:
            return LOOK
        epoch = await self._take()
        if epoch is None:
            return LOOK
        self._take_over(epoch)
        suspects = await self._suspects.find(*_asking(rules), self._is_ours)
        self._starts.begin()
        fresh = [_which(stored) for stored in rules if _which(stored) not in self._looked]
        look = Evaluation(
            self._env, self._store, self._learned, self._starts, self._nearing, self._turns, suspects,
            lambda one: _which(one) in fresh,
        )  # fmt: skip
        self._looked &= {_which(stored) for stored in rules}
        going_on = await self._store.read(lambda: alerts.rules_with_open(rules))
        for stored in rules:
            if not await self._is_ours():
                return LOOK
            if self._is_due(stored):
                await self._look_at(look, stored, has_open=(stored.namespace, stored.name) in going_on)
        await self._forget()
        return LOOK

    async def _take(self) -> int | None:
        now = self._env.now()
        self._renew_at = self._env.clock.monotonic() + TERM / SECOND / 2
        return await self._store.write(lambda: housekeeping.take_duty("alerts", self._node, now, now + TERM))

    async def _is_ours(self) -> bool:
        """Return whether this server still holds the duty, and renew it: a round may take longer than its term."""
        if self._env.clock.monotonic() < self._renew_at:
            return True
        if await self._take() == self._epoch:
            return True
        self._renew_at = 0.0
        return False

    def _take_over(self, epoch: int) -> None:
        """Forget all progress if the duty is new: other servers evaluated rules meanwhile, or no server did."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._looked.clear()
            self._later.clear()
            self._suspects.restart()

    async def _rules(self) -> Sequence[StoredRule]:
        found: list[StoredRule] = []
        after = START
        while page := await self._store.read(lambda after=after: alert_rules.active(after)):  # type: ignore[misc]
            found += page
            after = (page[-1].namespace, page[-1].name)
            if len(page) < alert_rules.PAGE:
                break
        return found

    def _is_due(self, stored: StoredRule) -> bool:
        """Return whether to evaluate a rule in this round: a rule with a limit of days need not be exact to seconds."""
        if not isinstance(stored.rule, MissingSuccess):
            return True
        now, which = self._env.clock.monotonic(), _which(stored)
        if self._later.get(which, 0.0) > now:
            return False
        if len(self._later) > MOST_LATER:
            self._later.clear()
        self._later[which] = now + min(SLOW, stored.rule.after / SECOND / 60)
        return True

    async def _look_at(self, look: Evaluation, stored: StoredRule, *, has_open: bool) -> None:
        """Evaluate a rule and write the changes. After an error the next evaluation counts as the rule's first."""
        which = _which(stored)
        try:
            opened = await self._store.read(lambda: alerts.open_alerts(*which[:2])) if has_open else []
            found = await look.find(stored, opened)
            if not alerts.has_changes(stored, found, opened, self._env.now()):
                self._looked.add(which)
                return
            settled = await self._store.change(lambda now: alerts.settle(stored, found, self._env.new_id, now))
        except StoreUnavailable:
            raise
        except Exception:
            self.failed += 1
            self._looked.discard(which)
            log.exception("an alert rule could not be evaluated", rule=stored.name, kind=stored.rule.kind)
            return
        self._looked.add(which)
        self.fired += len(settled.opened)
        self.recovered += len(settled.recovered)
        self._tell(settled.opened, "firing")
        self._tell(settled.recovered, "recovered")
        if settled.notices:
            self._notices_made()

    def _tell(self, changed: Sequence[Alert], state: str) -> None:
        for alert in changed:
            tell = log.warning if state == "firing" else log.info
            tell(f"alert is {state}", rule=alert.rule, subject=alert.subject, alert=str(alert.id), said=alert.message)
            event = Event("alert", alert.id, state, alert.namespace, self._env.now(), alert.job)
            self._hints.send(Hint(events=[event]))

    async def _forget(self) -> None:
        if self._env.clock.monotonic() < self._forget_at:
            return
        self._forget_at = self._env.clock.monotonic() + FORGET_EVERY
        before = self._env.now() - KEPT
        while await self._store.write(lambda: alert_notices.forget(before, FORGET)) == FORGET:
            await self._env.clock.sleep(0)
        while await self._store.write(lambda: alerts.forget(before, FORGET)) == FORGET:
            await self._env.clock.sleep(0)


def _which(stored: StoredRule) -> tuple[int, str, int]:
    return stored.namespace, stored.name, stored.revision


def _asking(rules: Sequence[StoredRule]) -> tuple[RulesByNamespace, int]:
    """Return the rules that need failures from history, and the longest streak that one of them asks for."""
    asking: dict[int, list[tuple[str, int]]] = {}
    most = 0
    for stored in rules:
        if isinstance(stored.rule, FailuresInARow):
            asking.setdefault(stored.namespace, []).append((stored.name, stored.revision))
            most = max(most, stored.rule.count)
    return asking, most
