"""The events part of a server: webhooks, watched places, and the intake that starts jobs."""

from collections.abc import Collection, Sequence

from horae.engine.definitions.job_drafts import CheckPlace
from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.features.events.engine.hook_secrets import HookSecrets
from horae.features.events.engine.hooks import Hooks
from horae.features.events.engine.intake import EventIntake
from horae.features.events.engine.watching.watcher import Places, Watcher


def check_place(settings: EngineSettings) -> CheckPlace:
    """Return the check that refuses places outside the allowed roots."""
    return Places(settings.watch_roots).check


class EventsPart(ServerPart):
    """The part that receives events from the API, from webhooks and from watched places."""

    def __init__(self, node: ServerNode) -> None:
        env, store, base = node.env, node.store, node.base
        directory, hints, topics = base.directory, base.hints, base.topics
        self.intake = EventIntake(env, store, directory, hints, node.admission.quotas, topics)
        self.hook_secrets = HookSecrets(env, store, base.sealer, base.secrets)
        self.hooks = Hooks(env, store, self.intake, lambda: node.fleet.presence.url, self.hook_secrets)
        places = Places(node.settings.watch_roots)
        self.watcher = Watcher(env, store, directory, hints, base.clock, self.intake.check, places, topics)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.watcher] if "scheduler" in roles else ()

    async def finish(self) -> None:
        await self.intake.close()

    async def stop(self) -> None:
        await self.watcher.stop()
