"""The part of a server that erases data."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.storage.file_storage import open_storage
from horae.features.archive.engine.reader import ArchiveReader
from horae.features.erasure.engine.executions import Erasures
from horae.features.erasure.engine.namespaces import NamespaceCanceller, NamespaceErasures


class ErasurePart(ServerPart):
    """Erases the data of executions and of whole namespaces, also in the archive if that feature is switched off."""

    def __init__(self, node: ServerNode) -> None:
        env, store, tenancy = node.env, node.store, node.tenancy
        archive = ArchiveReader(env, store, open_storage(node.settings.artifacts))
        ends = NamespaceCanceller(store, node.base.outcomes)
        self.erasures = Erasures(store, node.work.executions, node.base.execution_sealer, archive)
        self.namespace_erasures = NamespaceErasures(
            env, store, tenancy.namespaces, node.definitions.jobs, tenancy.keys, ends, archive
        )
