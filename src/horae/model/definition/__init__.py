"""A job's definition as the API spells it: read with every mistake named, written back, and changed by patches.

`parse_definition(render_definition(spec))` gives the same spec again.
"""

from horae.model.definition.patch import merge_definition
from horae.model.definition.read import FIELDS, TASKS, Definition, parse_definition, parse_whens
from horae.model.definition.write import render_definition

__all__ = [
    "FIELDS",
    "TASKS",
    "Definition",
    "merge_definition",
    "parse_definition",
    "parse_whens",
    "render_definition",
]
