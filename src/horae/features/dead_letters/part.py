"""The part of a server for dead letters."""

from collections.abc import Collection, Sequence

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.features.dead_letters.engine.replays import Replayer, Replays


class DeadLettersPart(ServerPart):
    """The part that lists, retries, replays and discards dead letters."""

    def __init__(self, node: ServerNode) -> None:
        self.dead_letters = DeadLetters(node.env, node.store, node.submitter.submit_all, node.work.executions)
        self.replayer = Replayer(node.env, node.store, self.dead_letters)
        self.replays = Replays(node.env, node.store, self.dead_letters, self.replayer.alarm.ring)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.replayer] if "scheduler" in roles else ()
