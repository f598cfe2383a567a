"""Artifacts in a server."""

from collections.abc import Collection, Sequence

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.engine.service import Service
from horae.engine.storage.place import place_at
from horae.features.artifacts.engine.keeper import Artifacts
from horae.features.artifacts.engine.sweep import ArtifactSweeper


class ArtifactsPart(Part):
    """Keeps files of executions, and deletes those that are over their time."""

    def __init__(self, node: Node) -> None:
        place, most = place_at(node.settings.artifacts), node.settings.artifact_limit
        self.artifacts = Artifacts(node.env, node.store, node.fleet.sessions, node.work.executions, place, most)
        self.sweeper = ArtifactSweeper(node.env, node.store, node.id, place)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.sweeper] if "scheduler" in roles else ()
