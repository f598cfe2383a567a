"""Rollouts as a part of a server."""

from collections.abc import Collection, Sequence

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.rollouts.engine import Rollouts


class RolloutsPart(ServerPart):
    """Runs another version of a job for a share of its new executions, and judges that version."""

    def __init__(self, node: ServerNode) -> None:
        base = node.base
        self.rollouts = Rollouts(node.env, node.store, node.id, base.hints, node.definitions.jobs, base.topics)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.rollouts]
