"""Nodes of a compiled expression. Each computes its value from a frame; all but literals spend at least one step.

A node has a number of steps, `floor`, that is known before evaluation, and for a loop over a literal list counts every
element. So an expression that is too costly for any data is refused when it is compiled.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from horae.model.expressions.functions import Function
from horae.model.expressions.meter import FAILURE_STEPS, EvaluationError, Meter, MissingName, OverBudget
from horae.model.expressions.values import (
    added,
    at,
    contains,
    divided,
    equal,
    kind,
    member,
    multiplied,
    ordered,
    remainder,
    subtracted,
    take_key,
    whole,
)

MOST_DEPTH = 200  # levels of nested nodes


class Frame(Meter):
    """The state of one evaluation: its variables and the remaining steps."""

    __slots__ = ("names",)

    def __init__(self, names: dict[str, Any], meter: Meter) -> None:
        self.names, self.left, self.most = names, meter.left, meter.most  # `over` is set on the meter only


Run = Callable[[Frame], Any]


class Node:
    """A compiled node."""

    __slots__ = ("branches", "depth", "field", "floor", "is_path", "length", "makes", "of", "run", "varies")

    def __init__(
        self,
        run: Run,
        *parts: "Node",
        steps: int = 1,
        length: int | None = None,
        makes: bool = False,
        varies: bool | None = None,
    ) -> None:
        self.run = run
        self.floor: int = steps + sum(part.floor for part in parts)  # the steps if every node is evaluated
        self.length = length  # the length of the list that it gives, if the expression's text tells it
        # Whether it creates lists, maps or texts that may be larger than the data.
        self.makes: bool = makes or any(part.makes for part in parts)
        # The kind of its value depends on the values of variables, not only on their kinds.
        self.varies: bool = any(part.varies for part in parts) if varies is None else varies
        self.is_path = False  # a variable, or a member of one
        self.branches: tuple[Node, ...] = ()  # the nodes of a conditional, which gives the value of one of them
        self.depth: int = 1 + max((part.depth for part in parts), default=0)
        self.of: Node | None = None  # the node of the map, if this is the member `of.field`
        self.field = ""
        if self.depth > MOST_DEPTH:
            raise EvaluationError(f"it is nested more than {MOST_DEPTH} levels deep")


def constant(value: Any) -> Node:
    """Make the node of a literal."""

    def run(frame: Frame) -> Any:
        return value

    return Node(run)


def name(of: str) -> Node:
    """Make the node of a variable."""

    def run(frame: Frame) -> Any:
        frame.left -= 1
        if frame.left < 0:
            raise OverBudget(frame.most)
        try:
            return frame.names[of]
        except KeyError:
            raise MissingName(f"there is no {of!r}") from None

    node = Node(run)
    node.is_path = True
    return node


def select(holder: Node, field: str) -> Node:
    """Make the node of a map's member."""
    inner = holder.run

    def run(frame: Frame) -> Any:
        frame.left -= 1
        if frame.left < 0:
            raise OverBudget(frame.most)
        return member(inner(frame), field)

    node = Node(run, holder, varies=not holder.is_path)
    node.of, node.field, node.is_path = holder, field, holder.is_path
    return node


def has(selected: Node) -> Node:
    """Make the node of a test for a map's member."""
    holder, field = selected.of, selected.field
    if holder is None:
        raise EvaluationError("has() needs the member of a map, as in has(params.day)")
    inner = holder.run

    def run(frame: Frame) -> bool:
        frame.take(1)
        found = inner(frame)
        if not isinstance(found, dict):
            raise EvaluationError(f"{kind(found)} has no {field!r}")
        return field in found

    return Node(run, holder, varies=False)


def index(holder: Node, place: Node) -> Node:
    """Make the node of an element."""

    def run(frame: Frame) -> Any:
        frame.take(1)
        return at(frame, holder.run(frame), place.run(frame))

    return Node(run, holder, place, varies=True)


_COMPUTED: dict[str, Callable[[Meter, Any, Any], Any]] = {
    "+": added, "-": subtracted, "*": multiplied, "/": divided, "%": remainder,
    "==": equal, "!=": lambda meter, a, b: not equal(meter, a, b),
    "in": lambda meter, value, holder: contains(meter, holder, value),
}  # fmt: skip
_ARITHMETIC = frozenset("+-*/%")
_ORDERED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def binary(sign: str, left: Node, right: Node) -> Node:
    """Make the node of a binary operator."""
    one, other = left.run, right.run
    length = left.length + right.length if sign == "+" and left.length and right.length else None
    varies = False if sign not in _ARITHMETIC else None
    if sign in _ORDERED:
        compare = _ORDERED[sign]

        def run(frame: Frame) -> Any:
            frame.take(1)
            return ordered(frame, one(frame), other(frame), compare)
    else:
        compute = _COMPUTED[sign]

        def run(frame: Frame) -> Any:
            frame.take(1)
            return compute(frame, one(frame), other(frame))

    return Node(run, left, right, length=length, makes=sign == "+", varies=varies)


def logic(sign: str, parts: Sequence[Node]) -> Node:
    """Make the node of `&&` or `||` over parts. If one part decides the result, errors of other parts are ignored."""
    decides = sign == "||"
    runs = [part.run for part in parts]

    def run(frame: Frame) -> bool:
        frame.take(1)
        return _decided(frame, runs, decides)

    return Node(run, *parts, varies=False)


def _decided(frame: Frame, runs: Sequence[Run], decides: bool) -> bool:
    failed: EvaluationError | None = None
    for part in runs:
        try:
            value = part(frame)
        except EvaluationError as error:
            frame.take(FAILURE_STEPS)
            failed = failed or error
            continue
        if value is decides:
            return bool(value)
        if not isinstance(value, bool):
            failed = failed or EvaluationError(f"{kind(value)} is neither true nor false")
    if failed is not None:
        raise failed
    return not decides


def truth(value: Any) -> bool:
    """Return the value of a condition. Raises EvaluationError if it is not a boolean."""
    if isinstance(value, bool):
        return value
    raise EvaluationError(f"{kind(value)} is neither true nor false")


def negation(inner: Node) -> Node:
    """Make the node of `!`."""

    def run(frame: Frame) -> bool:
        frame.take(1)
        return not truth(inner.run(frame))

    return Node(run, inner, varies=False)


def minus(inner: Node) -> Node:
    """Make the node of `-`."""

    def run(frame: Frame) -> Any:
        frame.take(1)
        value = inner.run(frame)
        if type(value) not in (int, float):
            raise EvaluationError(f"- needs a number, but got {kind(value)}")
        return whole(-value) if type(value) is int else -value

    return Node(run, inner)


def choice(condition: Node, yes: Node, no: Node) -> Node:
    """Make the node of `? :`."""

    def run(frame: Frame) -> Any:
        frame.take(1)
        return (yes if truth(condition.run(frame)) else no).run(frame)

    node = Node(run, condition, yes, no, varies=True)
    node.branches = yes, no
    return node


def results_of(node: Node) -> Iterator[Node]:
    """Yield the nodes of which one gives the value of a node: the branches of a conditional, or the node itself."""
    if not node.branches:
        yield node
    for branch in node.branches:
        yield from results_of(branch)


def list_of(parts: Sequence[Node]) -> Node:
    """Make the node of a list."""

    def run(frame: Frame) -> list[Any]:
        frame.take(1 + len(parts))
        return [part.run(frame) for part in parts]

    return Node(run, *parts, length=len(parts), makes=True, varies=False)


def map_of(pairs: Sequence[tuple[Node, Node]]) -> Node:
    """Make the node of a map."""

    def run(frame: Frame) -> dict[Any, Any]:
        frame.take(1 + 2 * len(pairs))
        made = {}
        for key, value in pairs:
            name = key.run(frame)
            if type(name) not in (str, int):
                raise EvaluationError(f"the key of a map is a string or an int, not {kind(name)}")
            take_key(frame, name)
            made[name] = value.run(frame)
        return made

    return Node(run, *(part for pair in pairs for part in pair), length=len(pairs), makes=True, varies=False)


def call(function: Function, arguments: Sequence[Node]) -> Node:
    """Make the node of a function call."""
    if len(arguments) == 1:
        only = arguments[0].run

        def run(frame: Frame) -> Any:
            frame.take(1)
            return function(frame, only(frame))
    else:

        def run(frame: Frame) -> Any:
            frame.take(1)
            return function(frame, *[argument.run(frame) for argument in arguments])

    return Node(run, *arguments, steps=2)
