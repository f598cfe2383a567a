"""Templates in a server."""

from horae.engine.node import Node
from horae.engine.parts.part import Part
from horae.features.templates.engine.templates import Templates


class TemplatesPart(Part):
    """Changes templates, with the jobs that were made from them."""

    def __init__(self, node: Node) -> None:
        self.templates = Templates(node.env, node.store, node.definitions.jobs)
