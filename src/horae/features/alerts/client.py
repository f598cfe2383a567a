"""`client.alerts` for alerts, with `.rules`, which raise alerts, and `.channels`, which notify users of alerts."""

from datetime import datetime
from typing import Any, Literal, Unpack

from horae.client.encode import document
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.features.alerts.options import AlertChannelFields, AlertRuleFields


class AlertDeliveryInfo(ApiDocument, frozen=True, kw_only=True):
    """The delivery of a notice about an alert. Its `state` is "pending", "delivered" or "failed"."""

    channel: str
    kind: str
    state: str
    attempts: int = 0
    last_error: str | None = None
    at: datetime | None = None


class AlertTest(ApiDocument, frozen=True, kw_only=True):
    """The result of a test: the deliveries of the test notices."""

    deliveries: list[AlertDeliveryInfo]


class AlertInfo(ApiDocument, frozen=True, kw_only=True):
    """An alert that a rule has raised. Its `state` is "firing", and "recovered" after its end."""

    alert_id: str
    rule: str
    kind: str
    state: str
    subject: str
    message: str
    severity: str = "warning"
    job_id: str | None = None
    execution_id: str | None = None
    since: datetime | None = None
    last_at: datetime | None = None
    recovered_at: datetime | None = None
    count: int = 1
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    deliveries: tuple[AlertDeliveryInfo, ...] = ()


class AlertRule(ApiDocument, frozen=True, kw_only=True):
    """A rule. `definition` has all its fields, in the format of `put`."""

    name: str
    kind: str
    state: str
    definition: dict[str, Any]
    firing: int = 0
    version: int | None = None


class AlertChannel(ApiDocument, frozen=True, kw_only=True):
    """A channel. `secret` is returned only once, when it was created for a webhook."""

    name: str
    kind: str
    to: dict[str, Any]
    description: str = ""
    secret: str | None = None
    version: int | None = None


class AlertRulesResource(Resource):
    """Operations on alert rules."""

    async def acknowledge(self, name: str) -> int:
        """Acknowledge all firing alerts of a rule; return how many of them were not acknowledged before."""
        answer = await self._caller.post(path_of("alert-rules", name, "acknowledge"))
        return int(answer["acknowledged"])

    # `python -m tools.sdk` writes the methods below, from the routes of alert-rules (create: none).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[AlertRule]:
        """List alert rules, sorted by name."""
        return page_of(AlertRule, await self._caller.get(path_of("alert-rules"), {"limit": limit, "cursor": cursor}))

    async def get(self, name: str) -> AlertRule:
        """Read an alert rule."""
        return AlertRule.of(await self._caller.get(path_of("alert-rules", name)))

    async def put(
        self, name: str, definition: dict[str, Any] | None = None, *, if_match: str | None = None,
        **fields: Unpack[AlertRuleFields],
    ) -> AlertRule:  # fmt: skip
        """Create or replace an alert rule."""
        query = document(definition, fields)
        return AlertRule.of(await self._caller.edit("PUT", path_of("alert-rules", name), query, if_match))

    async def delete(self, name: str) -> None:
        """Delete an alert rule; its alerts end without notices."""
        await self._caller.delete(path_of("alert-rules", name))

    async def pause(self, name: str) -> AlertRule:
        """Pause an alert rule; its alerts end without notices."""
        return AlertRule.of(await self._caller.post(path_of("alert-rules", name, "pause")))

    async def resume(self, name: str) -> AlertRule:
        """Resume an alert rule."""
        return AlertRule.of(await self._caller.post(path_of("alert-rules", name, "resume")))

    async def test(self, name: str) -> AlertTest:
        """Send one test notice to each channel of a rule, and return the outcomes."""
        return AlertTest.of(await self._caller.post(path_of("alert-rules", name, "test")))


class AlertChannelsResource(Resource):
    """Operations on channels."""

    # `python -m tools.sdk` writes the methods below, from the routes of alert-channels (create: none).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[AlertChannel]:
        """List channels, sorted by name, without their secrets."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(AlertChannel, await self._caller.get(path_of("alert-channels"), query))

    async def get(self, name: str) -> AlertChannel:
        """Read a channel, without its secrets."""
        return AlertChannel.of(await self._caller.get(path_of("alert-channels", name)))

    async def put(
        self, name: str, definition: dict[str, Any] | None = None, *, if_match: str | None = None,
        **fields: Unpack[AlertChannelFields],
    ) -> AlertChannel:  # fmt: skip
        """Create or replace a channel; a secret that is left out keeps its value."""
        query = document(definition, fields)
        return AlertChannel.of(await self._caller.edit("PUT", path_of("alert-channels", name), query, if_match))

    async def delete(self, name: str) -> None:
        """Delete a channel that no rule uses."""
        await self._caller.delete(path_of("alert-channels", name))

    async def test(self, name: str) -> AlertTest:
        """Send one test notice to a channel, and return the outcome."""
        return AlertTest.of(await self._caller.post(path_of("alert-channels", name, "test")))


class AlertsResource(Resource):
    """Operations on alerts; `rules` and `channels` have the operations on rules and channels."""

    rules: AlertRulesResource
    channels: AlertChannelsResource

    # `python -m tools.sdk` writes the methods below, from the routes of alerts.

    async def list(
        self, *, state: Literal["firing", "recovered"] | None = None, rule: str | None = None,
        job: str | None = None, limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[AlertInfo]:  # fmt: skip
        """List alerts, newest first, each with the state of its notices.

        `state`: Only firing or only recovered alerts. `rule`: Only alerts of this rule. `job`: Only entries of
        this job, by name or id.
        """
        query = {"state": state, "rule": rule, "job": job, "limit": limit, "cursor": cursor}
        return page_of(AlertInfo, await self._caller.get(path_of("alerts"), query))

    async def get(self, alert_id: str) -> AlertInfo:
        """Read an alert."""
        return AlertInfo.of(await self._caller.get(path_of("alerts", alert_id)))

    async def acknowledge(self, alert_id: str) -> AlertInfo:
        """Acknowledge an alert, which ends its reminders."""
        return AlertInfo.of(await self._caller.post(path_of("alerts", alert_id, "acknowledge")))
