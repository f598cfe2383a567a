"""The possible kinds of an expression's value, found by evaluating it with samples of its variables' values.

The samples stand for all values of their kind. So they tell the kind of a sum or of a call, but not the branch that a
condition chooses, nor the element of a list. Each branch of `a ? b : c` is evaluated on its own, and of the kinds of
elements nothing is known. An expression is refused only if none of its results can have a wanted kind. If this is not
certain, it is accepted, and checked again when it is computed.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any

from horae.errors import BadInput
from horae.model.base.paths import Branches, Path, branches_of
from horae.model.expressions.template import Expression, TemplateError

_SINGLE = (True, 1, 1.5, "a", None)
_ANYTHING: tuple[Any, ...] = (*_SINGLE, [], *([one] for one in _SINGLE), {}, *({"a": one} for one in _SINGLE))
_MOST_UNKNOWN = 2  # variables of unknown kind; all combinations of their samples are tried
_TEXT = ("a",)
_ERROR = {"type": "a", "message": "a", "kind": "a"}
_EXECUTION = {"id": "a", "scheduledAt": "a", "interval": {"start": "a", "end": "a"}}
_OF_STEP = ("result", "state", "error")
KINDS = ("boolean", "integer", "number", "string", "null", "array", "object")
_WORDS = {
    "boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "a text", "null": "null",
    "array": "a list", "object": "an object",
}  # fmt: skip


def refuse_kind(expression: Expression, field: str, wanted: Collection[str], remedy: str) -> None:
    """Refuse an expression if none of its results can have one of the wanted kinds."""
    found: set[str] = set()
    for result in expression.results():
        kinds: set[str] = set()
        for kind in _kinds_of_result(result):
            if kind in wanted:
                return
            kinds.add(kind)
        if not kinds:
            return
        found |= kinds
    given, never = (" or ".join(_WORDS.get(kind, kind) for kind in KINDS if kind in names) for names in (found, wanted))
    raise BadInput(f"{field}: ${{{expression.source}}} gives {given}, never {never}.", remedy, field=field)


def refuse_parts(expression: Expression, field: str) -> None:
    """Refuse references to members that a step or the execution does not have, such as `steps.load.output`."""
    tree = branches_of(expression.source)
    for name, below in (tree.get("steps") or {}).items():
        _refuse_others(expression, f"steps.{name}", below, _OF_STEP, field)
    _refuse_others(expression, "execution", tree.get("execution"), _EXECUTION, field)


def _refuse_others(
    expression: Expression, owner: str, below: "Branches | None", known: Collection[str], field: str
) -> None:
    for part in below or ():
        if part not in known:
            detail = f"${{{expression.source}}} refers to {owner}.{part}, which does not exist."
            raise BadInput(detail, f"{owner} has {', '.join(known)}.", field=field)


def _kinds_of_result(expression: Expression) -> Iterator[str]:
    """Yield the kind of an expression's value for each combination of samples.

    Yield nothing if samples do not tell the kind, or if too many variables are of unknown kind. Stop at a value that is
    not JSON.
    """
    if expression.kind_varies:
        return
    paths = list(_paths(branches_of(expression.source)))
    unknown = [path for path in paths if len(_samples(path)) > 2]
    if len(unknown) > _MOST_UNKNOWN:
        return
    for values in product(*map(_samples, paths)):
        scope: dict[str, Any] = {}
        for path, value in zip(paths, values, strict=True):
            _put(scope, path, value)
        try:
            found = _kind(expression.value(scope))
        except TemplateError:
            continue
        if found is None:
            return
        yield found


def _paths(tree: Branches, above: Path = ()) -> Iterator[Path]:
    for name, below in tree.items():
        if below is None:
            yield (*above, name)
        else:
            yield from _paths(below, (*above, name))


def _put(scope: dict[str, Any], path: Path, value: Any) -> None:
    *above, last = path
    for name in above:
        scope = scope.setdefault(name, {})
    scope[last] = value


def _samples(path: Path) -> Sequence[Any]:
    """Return samples of the values at a path."""
    head, rest = path[0], path[1:]
    if head == "steps":
        return _of_step(rest[1:])
    if head == "error":
        return _of_error(rest)
    if head == "execution":
        return (_at(_EXECUTION, rest),)
    if head == "index":
        return (1,)
    if head == "callbacks":
        return _TEXT if rest else ({"a": "a"},)
    if head in ("params", "event") and not rest:
        return [sample for sample in _ANYTHING if isinstance(sample, dict)]
    return _ANYTHING


def _of_step(rest: Path) -> Sequence[Any]:
    if not rest:
        return [{"result": sample, "state": "success", "error": None} for sample in _ANYTHING]
    if rest[0] == "state":
        return _TEXT
    return _of_error(rest[1:]) if rest[0] == "error" else _ANYTHING


def _of_error(rest: Path) -> Sequence[Any]:
    return _TEXT if rest else (None, _ERROR)


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _kind(value: Any) -> str | None:
    """Return the kind of a value by its name in JSON schemas; None for a value that is not JSON."""
    if value is None:
        return "null"
    found = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return found.get(type(value))
