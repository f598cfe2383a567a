"""The audit log in a server."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.features.audit_log.engine import AuditLog


class AuditLogPart(ServerPart):
    """Shows what was recorded, with its proof."""

    def __init__(self, node: ServerNode) -> None:
        found = node.tenancy.audit
        assert isinstance(found, AuditLog)
        self.audit_log = found
