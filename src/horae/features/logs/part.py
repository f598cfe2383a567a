"""The part of a server that reads logs."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.features.logs.engine.logs import ExecutionLogs
from horae.store.executions.log_lines import LIMIT_FACTOR


class LogsPart(ServerPart):
    """The part that reads and searches logs of executions."""

    def __init__(self, node: ServerNode) -> None:
        most = node.settings.log_limit * LIMIT_FACTOR
        self.logs = ExecutionLogs(node.store, node.work.executions, most=most)
