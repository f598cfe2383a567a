"""The audit log in a server."""

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.features.audit_log.engine import AuditLog


class AuditLogPart(Part):
    """Shows what was recorded, with its proof."""

    def __init__(self, node: Node) -> None:
        found = node.tenancy.audit
        assert isinstance(found, AuditLog)
        self.audit_log = found
