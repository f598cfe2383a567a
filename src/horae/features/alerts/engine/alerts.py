"""Operations on alerts: list and acknowledge them; also the tests of rules and channels."""

import asyncio
from collections.abc import Iterable
from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import find_job
from horae.env import Env, Instant
from horae.errors import Conflict, NotFound
from horae.features.alerts.engine.channels import AlertChannels
from horae.features.alerts.engine.delivery import CLAIM, AlertDelivery
from horae.features.alerts.engine.rules import AlertRules
from horae.features.alerts.model.notification import encode_content, summarize
from horae.features.alerts.model.rule import RULE, AlertState, Kind
from horae.features.alerts.model.view import AcknowledgementView, AlertTestView, AlertView, DeliveryView
from horae.features.alerts.store import alerts as moves
from horae.features.alerts.store import notices
from horae.features.alerts.store.alerts import LAST
from horae.features.alerts.store.notice_writer import Alert
from horae.features.alerts.store.notices import Delivery, Notice
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.event import ChangeEvent
from horae.model.base.instant import format_instant
from horae.model.base.view import Page, shown_time
from horae.store.contract import Store
from horae.store.script import Script

MOST_PAGES = 20  # pages of rows that are read at most to fill one page of a filtered list
MOST_EVENTS = 100  # events that are sent at most for one acknowledgement of all alerts of a rule


class Alerts:
    """The operations on alerts."""

    def __init__(
        self,
        env: Env,
        store: Store,
        hints: Hints,
        rules: AlertRules,
        channels: AlertChannels,
        delivery: AlertDelivery,
    ) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._rules, self._channels, self._delivery = rules, channels, delivery

    async def firing(self) -> dict[tuple[int, str], int]:
        """Count the firing alerts by namespace and severity."""
        return await self._store.read(moves.firing)

    async def list(
        self,
        namespace: int,
        *,
        state: AlertState | None = None,
        rule: str | None = None,
        job: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[AlertView]:
        """Return a page of alerts, newest first."""
        job_id = None if job is None else (await find_job(self._store, namespace, job)).job.id
        before, most = LAST if cursor is None else read_cursor(cursor, UUID), check_limit(limit)
        found: list_of[Alert] = []
        for _ in range(MOST_PAGES):
            page = await self._store.read(
                lambda before=before: moves.page(  # type: ignore[misc]
                    namespace, before, most + 1, firing=state == "firing", job=job_id
                )
            )
            found += [a for a in page if state in (None, a.state) and rule in (None, a.rule)]
            if len(page) <= most or len(found) > most:
                break
            before = page[-1].id
        more = None
        if len(found) > most:
            more = make_cursor(found[most - 1].id)
        elif len(page) > most:
            more = make_cursor(page[-1].id)
        return Page(items=await self._shown(found[:most]), next_cursor=more)

    async def get(self, namespace: int, alert_id: UUID) -> AlertView:
        """Return an alert. Raises NotFound."""
        found = await self._store.read(lambda: moves.find(alert_id, namespace))
        if found is None:
            raise _not_found(alert_id)
        return (await self._shown([found]))[0]

    async def acknowledge(self, namespace: int, alert_id: UUID, by: str) -> AlertView:
        """Acknowledge an alert, which ends its reminders.

        Raises NotFound, and Conflict if the alert ended without an acknowledgement.
        """
        found = await self._store.change(lambda now: moves.acknowledge(alert_id, namespace, by, now))
        if found is None:
            raise _not_found(alert_id)
        if found.acknowledged_at is None:
            raise Conflict("This alert has ended.", "Only firing alerts can be acknowledged.")
        if found.state == "firing":
            event = ChangeEvent("alert", found.id, "acknowledged", namespace, self._env.now(), found.job)
            self._hints.send(Hint(events=[event]))
        return (await self._shown([found]))[0]

    async def acknowledge_rule(self, namespace: int, name: str, by: str) -> AcknowledgementView:
        """Acknowledge all firing alerts of a rule; return how many were not acknowledged before. Raises NotFound."""
        await self._rules.stored(namespace, name)
        changed = await self._store.change(lambda now: moves.acknowledge_all(namespace, name, by, now))
        events = [
            ChangeEvent("alert", alert_id, "acknowledged", namespace, self._env.now(), job) for alert_id, job in changed
        ]
        if events:
            self._hints.send(Hint(events=events[:MOST_EVENTS]))
        return AcknowledgementView(rule=name, acknowledged=len(changed))

    async def test_rule(self, namespace: int, name: str) -> AlertTestView:
        """Send a test notice to each channel of a rule and return the outcomes. Raises NotFound, Conflict."""
        stored = await self._rules.stored(namespace, name)
        if not stored.rule.channels:
            raise Conflict(f'Rule "{name}" has no channels.', "Add one: `horae alerts rules put`.")
        return await self._test(namespace, name, stored.rule.kind, stored.rule.severity, stored.rule.channels)

    async def test_channel(self, namespace: int, name: str) -> AlertTestView:
        """Send a test notice to a channel and return the outcome. Raises NotFound."""
        await self._channels.get(namespace, name)
        return await self._test(namespace, "test", next(iter(RULE.tables)), "info", [name])

    async def _test(
        self, namespace: int, rule: str, kind: Kind, severity: str, channels: Iterable[str]
    ) -> AlertTestView:
        """Send a test notice to each channel and return the outcomes.

        The notices are stored as claimed by this server, and are then tried like all notices, but only once.
        """
        now = self._env.now()
        summary = summarize("test", "this is a test, and nothing is wrong", now)
        content = encode_content("test", [summary], rule=rule, alert_kind=kind, severity=severity, at=now)
        written = [self._test_notice(namespace, rule, channel, content, now) for channel in channels]

        def script() -> Script[None]:
            yield notices.put(written, now + CLAIM, now)

        await self._store.write(script)
        results = await asyncio.gather(*(self._delivery.deliver(one) for one in written))
        at = self._env.now()
        outcomes = [
            Delivery(one.channel, "test", state, 1, error, at)
            for one, (state, error) in zip(written, results, strict=True)
        ]
        return AlertTestView(deliveries=[_delivery(one) for one in outcomes])

    def _test_notice(self, namespace: int, rule: str, channel: str, content: str, now: Instant) -> Notice:
        notice_id = self._env.new_id()
        return Notice(
            id=notice_id, letter=notice_id, namespace=namespace, alert=None, rule=rule, channel=channel, kind="test",
            content=content, attempts=1, created_at=now,
        )  # fmt: skip

    async def _shown(self, found: "list_of[Alert]") -> "list_of[AlertView]":
        notices_by_alert = (
            await self._store.read(lambda: notices.deliveries([alert.id for alert in found])) if found else {}
        )
        return [_view(alert, notices_by_alert[alert.id]) for alert in found]


list_of = list  # the class has a method named `list`


def _view(alert: Alert, deliveries: "list_of[Delivery]") -> AlertView:
    return AlertView(
        alert_id=alert.id, rule=alert.rule, kind=alert.kind, severity=alert.severity, state=alert.state,
        subject=alert.subject, job_id=alert.job, execution_id=alert.execution, message=alert.message,
        since=format_instant(alert.since), last_at=format_instant(alert.last_at),
        recovered_at=shown_time(alert.recovered_at), count=alert.count,
        acknowledged_at=shown_time(alert.acknowledged_at), acknowledged_by=alert.acknowledged_by or None,
        deliveries=[_delivery(one) for one in deliveries],
    )  # fmt: skip


def _delivery(one: Delivery) -> DeliveryView:
    return DeliveryView(
        channel=one.channel, kind=one.kind, state=one.state, attempts=one.attempts, last_error=one.error or None,
        at=format_instant(one.at),
    )  # fmt: skip


def _not_found(alert_id: UUID) -> NotFound:
    return NotFound(f"There is no alert {alert_id}.", "List them with `horae alerts list`; old ones are deleted.")
