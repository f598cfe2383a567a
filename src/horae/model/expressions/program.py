"""Compilation and evaluation of expressions, both within bounds. Other packages use expressions only through this."""

from collections.abc import Iterator, Mapping
from typing import Any

from horae.model.expressions.meter import MOST_STEPS, MOST_TEXT, EvaluationError, Meter, OverBudget
from horae.model.expressions.nodes import Frame, Node, results_of
from horae.model.expressions.parse import parse
from horae.model.expressions.values import weigh


class Program:
    """A compiled expression."""

    __slots__ = ("_makes", "_node", "_run", "variables")

    def __init__(self, source: str) -> None:
        """Compile a text. Raises EvaluationError, and OverBudget if its literals make it too costly for any data."""
        if len(source) > MOST_TEXT:
            raise EvaluationError(f"it has {len(source)} characters; at most {MOST_TEXT} are allowed")
        parsed = parse(source)
        if parsed.node.floor > MOST_STEPS:
            raise OverBudget(MOST_STEPS)
        self._set(parsed.node, parsed.variables)

    def _set(self, node: Node, variables: frozenset[str]) -> None:
        self._node, self._run, self._makes, self.variables = node, node.run, node.makes, variables

    @property
    def kind_varies(self) -> bool:
        """Return whether the kind of the value may depend on the values of variables, not only on their kinds."""
        return self._node.varies

    def results(self) -> Iterator["Program"]:
        """Yield the expressions between which its conditions choose; without a condition, the expression itself."""
        for node in results_of(self._node):
            program = Program.__new__(Program)
            program._set(node, self.variables)
            yield program

    def value(self, scope: Mapping[str, Any], meter: Meter) -> Any:
        """Evaluate it within a budget. Raises EvaluationError and OverBudget."""
        frame = Frame(dict(scope), meter)
        try:
            found = self._run(frame)
            if self._makes:
                weigh(frame, found)
        except OverflowError:
            raise EvaluationError("a number is out of range") from None
        finally:
            meter.left = frame.left
        return found
