"""Templates as a part of a server."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.features.templates.engine.templates import Templates


class TemplatesPart(ServerPart):
    """Changes templates together with the jobs made from them."""

    def __init__(self, node: ServerNode) -> None:
        self.templates = Templates(node.env, node.store, node.definitions.jobs)
