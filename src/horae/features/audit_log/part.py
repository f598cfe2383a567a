"""The audit log in a server."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.features.audit_log.engine import AuditLog


class AuditLogPart(ServerPart):
    """The feature's part of a server: the log, with its integrity check."""

    def __init__(self, node: ServerNode) -> None:
        found = node.tenancy.audit
        assert isinstance(found, AuditLog)
        self.audit_log = found

    async def prepare(self) -> None:
        await self.audit_log.prepare()

    async def finish(self) -> None:
        await self.audit_log.close()
