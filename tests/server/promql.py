"""What a PromQL expression asks for: which metrics, and which of their labels."""

from collections.abc import Iterator
from typing import Any

import promql_parser

PARTS = ("lhs", "rhs", "expr", "vector_selector", "param")


def asked_for(expression: str) -> dict[str, set[str]]:
    """Metrics by name, each with the labels that the expression tells it apart by. Raises on what is not PromQL."""
    found: dict[str, set[str]] = {}
    _look(promql_parser.parse(expression), frozenset(), found)
    return found


def _look(part: Any, labels: frozenset[str], found: dict[str, set[str]]) -> None:
    """Labels of an aggregation, or of a match, are asked of all that stands within it."""
    labels |= _labels(getattr(part, "modifier", None))
    if isinstance(part, promql_parser.VectorSelector):
        own = found.setdefault(part.name, set())
        own |= labels | {matcher.name for matcher in part.matchers.matchers}
    for inner in _parts(part):
        _look(inner, labels, found)


def _parts(part: Any) -> Iterator[Any]:
    for name in PARTS:
        inner = getattr(part, name, None)
        if isinstance(inner, promql_parser.Expr):
            yield inner
    yield from getattr(part, "args", None) or ()


def _labels(modifier: Any) -> frozenset[str]:
    """Those of `by`, or of `on`; `without` and `ignoring` ask for none."""
    inner = getattr(modifier, "matching", modifier)
    asks = inner is not None and inner.type in (
        promql_parser.AggModifierType.By,
        promql_parser.LabelModifierType.Include,
    )
    return frozenset(inner.labels) if asks else frozenset()
