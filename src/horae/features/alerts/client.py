"""`client.alerts`: what was found, `.rules` that say what to look for, and `.channels` that say where to tell it."""

from datetime import datetime
from typing import Any

from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of


class AlertDelivery(View, frozen=True, kw_only=True):
    """How a notice fares: "pending", "delivered" or "failed"."""

    channel: str
    kind: str
    state: str
    attempts: int = 0
    last_error: str | None = None
    at: datetime | None = None


class AlertTest(View, frozen=True, kw_only=True):
    """What became of a test."""

    deliveries: list[AlertDelivery]


class Alert(View, frozen=True, kw_only=True):
    """Something that a rule found; "firing" until it is "recovered"."""

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
    deliveries: tuple[AlertDelivery, ...] = ()


class AlertRule(View, frozen=True, kw_only=True):
    """A rule; `definition` is the whole of it."""

    name: str
    kind: str
    state: str
    definition: dict[str, Any]
    firing: int = 0
    version: int | None = None


class AlertChannel(View, frozen=True, kw_only=True):
    """A channel; `secret` is there once, when one was made for a webhook."""

    name: str
    kind: str
    to: dict[str, Any]
    description: str = ""
    secret: str | None = None
    version: int | None = None


class AlertRules:
    """Rules, by name."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def put(self, name: str, definition: dict[str, Any], *, if_match: str | None = None) -> AlertRule:
        """Make the rule of this name be as the definition says, as the API spells it."""
        return AlertRule.of(await self._caller.edit("PUT", path_of("alert-rules", name), definition, if_match))

    async def get(self, name: str) -> AlertRule:
        return AlertRule.of(await self._caller.get(path_of("alert-rules", name)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AlertRule]:
        """A page of rules, by name."""
        return page_of(AlertRule, await self._caller.get(path_of("alert-rules"), {"limit": limit, "cursor": cursor}))

    async def delete(self, name: str) -> None:
        """Remove a rule; its alerts are over."""
        await self._caller.delete(path_of("alert-rules", name))

    async def pause(self, name: str) -> AlertRule:
        return AlertRule.of(await self._caller.post(path_of("alert-rules", name, "pause")))

    async def resume(self, name: str) -> AlertRule:
        return AlertRule.of(await self._caller.post(path_of("alert-rules", name, "resume")))

    async def acknowledge(self, name: str) -> int:
        """Somebody looks after all that it has found so far; how many nobody looked after."""
        answer = await self._caller.post(path_of("alert-rules", name, "acknowledge"))
        return int(answer["acknowledged"])

    async def test(self, name: str) -> AlertTest:
        """Tell all its channels that this is a test."""
        return AlertTest.of(await self._caller.post(path_of("alert-rules", name, "test")))


class AlertChannels:
    """Channels, by name."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def put(self, name: str, definition: dict[str, Any], *, if_match: str | None = None) -> AlertChannel:
        """Make the channel of this name be as the definition says; what is secret and left out stays as it was."""
        return AlertChannel.of(await self._caller.edit("PUT", path_of("alert-channels", name), definition, if_match))

    async def get(self, name: str) -> AlertChannel:
        return AlertChannel.of(await self._caller.get(path_of("alert-channels", name)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AlertChannel]:
        """A page of channels, by name."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(AlertChannel, await self._caller.get(path_of("alert-channels"), query))

    async def delete(self, name: str) -> None:
        """Remove a channel that no rule tells."""
        await self._caller.delete(path_of("alert-channels", name))

    async def test(self, name: str) -> AlertTest:
        """Tell it that this is a test."""
        return AlertTest.of(await self._caller.post(path_of("alert-channels", name, "test")))


class Alerts:
    """Alerts, and what makes and tells them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.rules = AlertRules(caller)
        self.channels = AlertChannels(caller)

    async def list(
        self,
        *,
        state: str | None = None,
        rule: str | None = None,
        job: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Alert]:
        """A page of alerts, newest first; `state` is "firing" or "recovered"."""
        query = {"state": state, "rule": rule, "job": job, "limit": limit, "cursor": cursor}
        return page_of(Alert, await self._caller.get(path_of("alerts"), query))

    async def get(self, id: str) -> Alert:
        return Alert.of(await self._caller.get(path_of("alerts", id)))

    async def acknowledge(self, id: str) -> Alert:
        """Somebody looks after it: nobody is reminded any more."""
        return Alert.of(await self._caller.post(path_of("alerts", id, "acknowledge")))
