"""The service that evaluates all rules every five seconds, and writes the changes of alerts with their notices.

Only one server does this, the one that holds the duty (a lease in the store). If two servers did it at once, this would
do no harm, because the row of a rule is locked while its alerts change, and at most one alert is open for each rule and
subject.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import StoreUnavailable
from horae.features.alerts.engine.deadlines import EstimateStart, NearDeadlines, StartEstimates, UsualDurations
from horae.features.alerts.engine.evaluation import BACK, Evaluation
from horae.features.alerts.engine.failed_jobs import FailedJobs, RulesByNamespace
from horae.features.alerts.engine.rotation import AlertRotation
from horae.features.alerts.model.rule import FailuresInARow, MissingSuccess
from horae.features.alerts.store import alerts
from horae.features.alerts.store import notices as alert_notices
from horae.features.alerts.store import rules as alert_rules
from horae.features.alerts.store.notice_writer import Alert
from horae.features.alerts.store.rules import Edition, StoredRule
from horae.model.base.duration import DAY, MINUTE
from horae.model.base.event import ChangeEvent
from horae.store.contract import Store
from horae.store.executions.reads import housekeeping

INTERVAL = 5.0  # seconds between rounds
TERM = 20 * SECOND  # how long the duty is held without renewal
RETENTION = 30 * DAY  # how long ended alerts, and notices that were delivered or given up, are stored
FORGET_EVERY = 3600.0  # seconds between deletions of old alerts and notices
DELETE_BATCH = 1000  # rows that one statement deletes
LONGEST_INTERVAL = 60.0  # seconds between evaluations of a rule that need not be exact, see `_is_due`
MOST_POSTPONED = 10_000  # rules with such a pause that are remembered
LONGEST_BREAK: Micros = (BACK - 1) * MINUTE  # between the beginnings of two rounds whose searches overlap
START = (0, "")
RuleEdition = tuple[int, str, Edition]  # a rule's namespace, name and edition
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
        notices_written: Callable[[], object],
    ) -> None:
        self._env, self._store, self._node, self._hints, self._clock = env, store, node, hints, clock
        self._durations, self._failed_jobs = UsualDurations(env, store), FailedJobs(env, store)
        self._starts, self._nearing = StartEstimates(env, starts), NearDeadlines(env, store)
        self._rotation = AlertRotation()
        self._epoch = 0  # the epoch of the duty when this server held it last
        self._renew_at = 0.0
        self._round_at: Instant = 0  # when the last complete round of this server began
        self._evaluated: set[RuleEdition] = set()  # evaluated since progress was last forgotten
        self._forget_at = 0.0
        self._next_at: dict[RuleEdition, float] = {}  # when rules that need not be exact are evaluated next
        self.fired = self.recovered = self.failed = 0  # counted on this server
        self._notices_written = notices_written
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Evaluate all rules once if this server has or gets the duty.

        Do nothing while the server does not trust its clock, because the store's clock has jumped.
        """
        if self._clock.trusted:
            await self._evaluate_all()
            await self._forget()
        return INTERVAL

    async def _evaluate_all(self) -> None:
        rules, began = await self._rules(), self._env.now()
        epoch = await self._take_duty() if rules else None
        if epoch is None:
            return
        self._reset_if_new(epoch, began)
        failed_jobs = await self._failed_jobs.find(*_rules_needing_failures(rules), self._is_ours)
        self._starts.begin()
        first = {_edition_of(stored) for stored in rules} - self._evaluated
        evaluation = Evaluation(
            self._env, self._store, self._durations, self._starts, self._nearing, self._rotation, failed_jobs,
            lambda one: _edition_of(one) in first,
        )  # fmt: skip
        self._evaluated &= {_edition_of(stored) for stored in rules}
        with_open = await self._store.read(lambda: alerts.rules_with_open(rules))
        for stored in rules:
            if not await self._is_ours():
                return
            if self._is_due(stored):
                await self._evaluate(evaluation, stored, has_open=(stored.namespace, stored.name) in with_open)
        self._round_at = began

    async def _take_duty(self) -> int | None:
        now = self._env.now()
        self._renew_at = self._env.clock.monotonic() + TERM / SECOND / 2
        return await self._store.write(lambda: housekeeping.take_duty("alerts", self._node, now, now + TERM))

    async def _is_ours(self) -> bool:
        """Return whether this server still holds the duty; renew it, because a round may take longer than its term."""
        if self._env.clock.monotonic() < self._renew_at:
            return True
        if await self._take_duty() == self._epoch:
            return True
        self._renew_at = 0.0
        return False

    def _reset_if_new(self, epoch: int, now: Instant) -> None:
        """Forget all progress if another server has held the duty since the last complete round, or that is long ago.

        After the first round, only the last minutes are searched for failures.
        """
        if epoch != self._epoch or now - self._round_at > LONGEST_BREAK:
            self._epoch = epoch
            self._evaluated.clear()
            self._next_at.clear()
            self._failed_jobs.restart()

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
        """Return whether to evaluate a rule in this round.

        A rule about missing successes is evaluated less often, because its limit is minutes to days. The pause is a
        sixtieth of the limit, at most a minute.
        """
        if not isinstance(stored.rule, MissingSuccess):
            return True
        now, key = self._env.clock.monotonic(), _edition_of(stored)
        if self._next_at.get(key, 0.0) > now:
            return False
        if len(self._next_at) > MOST_POSTPONED:
            self._next_at.clear()
        self._next_at[key] = now + min(LONGEST_INTERVAL, stored.rule.after / SECOND / 60)
        return True

    async def _evaluate(self, evaluation: Evaluation, stored: StoredRule, *, has_open: bool) -> None:
        """Evaluate a rule and write the changes. After an error, its next evaluation again counts as the first one."""
        key = _edition_of(stored)
        try:
            opened = await self._store.read(lambda: alerts.open_alerts(*key[:2])) if has_open else []
            found = await evaluation.find(stored, opened)
            if not alerts.has_changes(stored, found, opened, self._env.now()):
                self._evaluated.add(key)
                return
            settled = await self._store.change(lambda now: alerts.settle(stored, found, self._env.new_id, now))
        except StoreUnavailable:
            raise
        except Exception:
            self.failed += 1
            self._evaluated.discard(key)
            log.exception("an alert rule could not be evaluated", rule=stored.name, kind=stored.rule.kind)
            return
        self._evaluated.add(key)
        self.fired += len(settled.opened)
        self.recovered += len(settled.recovered)
        self._report(settled.opened, "firing")
        self._report(settled.recovered, "recovered")
        if settled.notices:
            self._notices_written()

    def _report(self, changed: Sequence[Alert], state: str) -> None:
        for alert in changed:
            write = log.warning if state == "firing" else log.info
            write(
                f"alert is {state}", rule=alert.rule, subject=alert.subject, alert=str(alert.id), detail=alert.message
            )
            event = ChangeEvent("alert", alert.id, state, alert.namespace, self._env.now(), alert.job)
            self._hints.send(Hint(events=[event]))

    async def _forget(self) -> None:
        if self._env.clock.monotonic() < self._forget_at:
            return
        self._forget_at = self._env.clock.monotonic() + FORGET_EVERY
        before = self._env.now() - RETENTION
        while await self._store.write(lambda: alert_notices.forget(before, DELETE_BATCH)) == DELETE_BATCH:
            await self._env.clock.sleep(0)
        while await self._store.write(lambda: alerts.forget(before, DELETE_BATCH)) == DELETE_BATCH:
            await self._env.clock.sleep(0)


def _edition_of(stored: StoredRule) -> RuleEdition:
    return stored.namespace, stored.name, stored.edition


def _rules_needing_failures(rules: Sequence[StoredRule]) -> tuple[RulesByNamespace, int]:
    """Return the rules about failures in a row, by namespace, and the largest number of failures among them."""
    asking: dict[int, list[tuple[str, Edition]]] = {}
    most = 0
    for stored in rules:
        if isinstance(stored.rule, FailuresInARow):
            asking.setdefault(stored.namespace, []).append((stored.name, stored.edition))
            most = max(most, stored.rule.count)
    return asking, most
