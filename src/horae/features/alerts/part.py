"""The part of a server that is about alerts: it connects rules, channels, evaluation and delivery."""

from collections.abc import Collection, Sequence

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.alerts.engine.alerts import Alerts
from horae.features.alerts.engine.channels import AlertChannels
from horae.features.alerts.engine.delivery import AlertDelivery
from horae.features.alerts.engine.rules import AlertRules
from horae.features.alerts.engine.watch import AlertWatch


class AlertsPart(ServerPart):
    """The part that evaluates alert rules and delivers notices through channels."""

    def __init__(self, node: ServerNode) -> None:
        env, store, base = node.env, node.store, node.base
        self.channels = AlertChannels(env, store, base.sealer, base.secrets)
        self.delivery = AlertDelivery(env, store, self.channels, base.outbound)
        starts_at, deliver = node.work.explainer.starts_at, self.delivery.alarm.ring
        self.watch = AlertWatch(env, store, node.id, base.hints, base.clock, starts_at, deliver)
        self.rules = AlertRules(store, self.watch.alarm.ring)
        self.alerts = Alerts(env, store, base.hints, self.rules, self.channels, self.delivery)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.watch, self.delivery] if "scheduler" in roles else ()

    async def stop(self) -> None:
        await self.delivery.stop()
