"""Erasure in a server."""

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.engine.storage.place import place_at
from horae.features.archive.engine.reader import ArchiveReader
from horae.features.erasure.engine.executions import Erasures
from horae.features.erasure.engine.namespace_ends import NamespaceEnds
from horae.features.erasure.engine.namespaces import NamespaceErasures


class ErasurePart(Part):
    """Erases the data of executions and of whole namespaces, also in an archive that is switched off."""

    def __init__(self, node: Node) -> None:
        env, store, tenancy = node.env, node.store, node.tenancy
        archive = ArchiveReader(env, store, place_at(node.settings.artifacts))
        ends = NamespaceEnds(store, node.base.outcomes)
        self.erasures = Erasures(store, node.work.executions, node.base.seals, archive)
        self.namespace_erasures = NamespaceErasures(
            env, store, tenancy.namespaces, node.definitions.jobs, tenancy.keys, ends, archive
        )
