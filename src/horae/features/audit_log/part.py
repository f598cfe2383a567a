"""The audit log in a server."""

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.features.audit_log.engine import AuditLog


class AuditLogPart(Part):
    """Records every change with its caller."""

    def __init__(self, node: Node) -> None:
        self.audit_log = AuditLog(node.env, node.store, node.base.sealer)
