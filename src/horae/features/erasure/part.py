"""Erasure in a server."""

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.engine.tenancy.namespace_erasures import NamespaceErasures
from horae.features.archive.part import ArchivePart
from horae.features.backfills.part import BackfillsPart
from horae.features.dead_letters.part import DeadLettersPart
from horae.features.erasure.engine import Erasures


class ErasurePart(Part):
    """Erases the data of executions and of whole namespaces, in the archive as well."""

    def __init__(self, node: Node) -> None:
        env, store, archive = node.env, node.store, node.part(ArchivePart).reader
        self.erasures = Erasures(store, node.work.executions, node.base.seals, archive)
        self.namespace_erasures = NamespaceErasures(
            env, store, node.tenancy.namespaces, node.definitions.jobs, node.part(BackfillsPart).backfills,
            node.part(DeadLettersPart).replays, node.tenancy.keys, node.tenancy.namespace_ends, archive,
        )  # fmt: skip
