"""The macros that iterate over a list or the keys of a map: `all`, `exists`, `exists_one`, `filter`, `map`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from horae.model.expressions.meter import FAILURE_STEPS, EvaluationError
from horae.model.expressions.nodes import Frame, Node, truth
from horae.model.expressions.values import kind

LOOPS = {"all": 1, "exists": 1, "exists_one": 1, "filter": 1, "map": 2}  # the maximum number of expressions each takes
_NOTHING = object()


def loop(macro: str, over: Node, own: str, bodies: Sequence[Node]) -> Node:
    """Make the node of a macro over a list or map; `own` is the name of the loop variable."""
    each = over.length or 1
    body, guard = bodies[-1].run, bodies[0].run if len(bodies) == 2 else None
    end = _ENDS[macro]

    def run(frame: Frame) -> Any:
        frame.take(1)
        found = over.run(frame)
        if not isinstance(found, list | dict):
            raise EvaluationError(f"{macro}() needs a list or a map, but got {kind(found)}")
        names = frame.names
        before = names.get(own, _NOTHING)
        try:
            return end(frame, _bound(frame, own, found), body, guard)
        finally:
            if before is _NOTHING:
                names.pop(own, None)
            else:
                names[own] = before

    length = over.length if macro == "map" and guard is None else None
    steps = sum(part.floor for part in bodies) * (each - 1) + each + 1
    return Node(run, over, *bodies, steps=steps, length=length, makes=macro in ("map", "filter"), varies=False)


def _bound(frame: Frame, own: str, elements: Any) -> Iterator[Any]:
    """Yield each element, bound to the loop variable."""
    names = frame.names
    for element in elements:
        frame.take(1)
        names[own] = element
        yield element


Body = Callable[[Frame], Any]
Ends = Callable[[Frame, Iterator[Any], Body, Body | None], Any]


def _quantified(decides: bool) -> Ends:
    """Return the function that computes `all`, which stops at the first false, or `exists`, at the first true.

    If an element decides the result, errors of earlier elements are ignored.
    """

    def end(frame: Frame, elements: Iterator[Any], body: Body, guard: Body | None) -> bool:
        failed: EvaluationError | None = None
        for _ in elements:
            try:
                if truth(body(frame)) is decides:
                    return decides
            except EvaluationError as error:
                frame.take(FAILURE_STEPS)
                failed = failed or error
        if failed is not None:
            raise failed
        return not decides

    return end


def _exists_one(frame: Frame, elements: Iterator[Any], body: Body, guard: Body | None) -> bool:
    return sum(truth(body(frame)) for _ in elements) == 1


def _filter(frame: Frame, elements: Iterator[Any], body: Body, guard: Body | None) -> list[Any]:
    return [element for element in elements if truth(body(frame))]


def _map(frame: Frame, elements: Iterator[Any], body: Body, guard: Body | None) -> list[Any]:
    return [body(frame) for _ in elements if guard is None or truth(guard(frame))]


_ENDS: dict[str, Ends] = {
    "all": _quantified(False),
    "exists": _quantified(True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}
