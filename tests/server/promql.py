"""The metrics that a PromQL expression reads, and their labels."""

from collections.abc import Iterator
from typing import Any

import promql_parser

PARTS = ("lhs", "rhs", "expr", "vector_selector", "param")


def asked_for(expression: str) -> dict[str, set[str]]:
    """Return metrics by name, each with the labels that the expression distinguishes. Raises on invalid PromQL."""
    found: dict[str, set[str]] = {}
    _look(promql_parser.parse(expression), frozenset(), found)
    return found


def _look(part: Any, labels: frozenset[str], found: dict[str, set[str]]) -> None:
    """Collect metrics; labels of an aggregation, or of a match, apply to everything within it."""
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
    """Return the labels of `by`, or of `on`; `without` and `ignoring` have none."""
    inner = getattr(modifier, "matching", modifier)
    asks = inner is not None and inner.type in (
        promql_parser.AggModifierType.By,
        promql_parser.LabelModifierType.Include,
    )
    return frozenset(inner.labels) if asks else frozenset()
