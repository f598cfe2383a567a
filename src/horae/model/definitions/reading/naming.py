"""Templates of keys, as a definition gives them."""

from typing import Any

from horae.model.base.naming import KNOWN
from horae.model.definitions.reading.values import a_text
from horae.model.expressions.template import compile_template

MOST_TEMPLATE = 1024


def a_key(value: Any, field: str) -> str:
    """A template of a key."""
    text = a_text(value, field, most=MOST_TEMPLATE, least=1)
    compile_template(text, field, KNOWN)
    return text
