"""A search of Python source for attributes of composed parts that other code assigns.

A part is a class whose constructor takes a service of the outside world (SERVICES) or another part. Values and working
records take neither, so that code may fill them in. The class of an object is read from annotations and from calls of
constructors; objects whose class is stated nowhere are not checked.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

SERVICES = frozenset({"Clock", "Driver", "Env", "Store", "Transport"})
Function = ast.FunctionDef | ast.AsyncFunctionDef
Types = dict[str, str]  # "name" or "self.name" -> class


def parts_of(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Return the names of all composed parts."""
    taken: dict[str, set[str]] = {}
    for tree in trees:
        for owner in _classes(tree):
            init = next((one for one in owner.body if isinstance(one, Function) and one.name == "__init__"), None)
            words = [] if init is None else [_words(argument.annotation) for argument in _arguments(init)]
            taken.setdefault(owner.name, set()).update(*words, *(_words(base) for base in owner.bases))
    parts: frozenset[str] = SERVICES
    while more := {name for name, needed in taken.items() if name not in parts and needed & parts}:
        parts |= more
    return parts


def outside_assignments(tree: ast.Module, parts: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield each assignment to an attribute of a part that is not `self`, with its line, as "Class.attribute"."""
    for owner in _classes(tree):
        own = _own_types(owner, parts)
        for method in owner.body:
            if isinstance(method, Function):
                yield from _in_function(method, own, parts)
    for node in tree.body:
        if isinstance(node, Function):
            yield from _in_function(node, {}, parts)


def _in_function(function: Function, own: Types, parts: frozenset[str]) -> Iterator[tuple[int, str]]:
    types = own | _types_in(function, parts)
    for node in ast.walk(function):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and (part := types.get(ast.unparse(target.value))):
                yield target.lineno, f"{part}.{target.attr}"


def _own_types(owner: ast.ClassDef, parts: frozenset[str]) -> Types:
    """Return the classes of the attributes that methods of a class assign."""
    found: Types = {}
    for method in owner.body:
        if isinstance(method, Function):
            found |= {name: part for name, part in _types_in(method, parts).items() if name.startswith("self.")}
    return found


def _types_in(function: Function, parts: frozenset[str]) -> Types:
    """Return the parts among the arguments, local names and attributes of a function."""
    found = {
        argument.arg: part for argument in _arguments(function) if (part := _part(_words(argument.annotation), parts))
    }
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and (part := _part(_words(node.annotation), parts)):
            found[ast.unparse(node.target)] = part
        if isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                if part := _part_of_value(value, found, parts):
                    found[ast.unparse(target)] = part
    return found


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with its value; `a, b = c, d` has two."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _part_of_value(value: ast.expr, known: Mapping[str, str], parts: frozenset[str]) -> str | None:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id if value.func.id in parts else None
    return known.get(ast.unparse(value))


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _arguments(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _words(annotation: ast.expr | None) -> set[str]:
    """Return the alternatives of an annotation: `"Store | None"` has "Store" and "None"; generics have none."""
    text = "" if annotation is None else ast.unparse(annotation).strip("'")
    return {word.rpartition(".")[2] for word in text.split(" | ") if re.fullmatch(r"[\w.]+", word)}


def _part(words: set[str], parts: frozenset[str]) -> str | None:
    return next(iter(sorted(words & parts)), None)
