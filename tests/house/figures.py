"""Figures of the source: files, rooms, names, siblings, sizes, the longest import chain.

`python -m tests.house.figures` prints them; a run with tests/house does so at its end.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

from tests.house.importing import Graph, imports_of

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = SOURCE / "horae"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Figures:
    """Numbers about a folder of source files; files and folders are named relative to it."""

    lines: Mapping[str, int]  # by file
    siblings: Mapping[str, int]  # modules by folder, without `__init__`
    functions: Mapping[str, int]  # lines by "file:line name"
    public: int  # classes and functions at the top of a module, without a leading underscore

    def rooms(self) -> Mapping[str, int]:
        """Return lines by room: a top folder, or one feature."""
        rooms: Counter[str] = Counter()
        for file, lines in self.lines.items():
            parts = Path(file).parts
            rooms["/".join(parts[:2]) if parts[0] == "features" and len(parts) > 2 else parts[0]] += lines
        return dict(rooms.most_common())

    def sizes(self) -> tuple[float, float, int]:
        """Return the median, the 90th percentile and the maximum of the functions' lines."""
        lengths = list(self.functions.values())
        return median(lengths), quantiles(lengths, n=10)[-1], max(lengths)


@cache
def figures(folder: Path = PACKAGE) -> Figures:
    lines, functions, siblings, public = {}, {}, Counter[str](), 0
    for path in sorted(folder.rglob("*.py")):
        file, text = str(path.relative_to(folder)), path.read_text()
        tree = ast.parse(text)
        lines[file] = text.count("\n")
        siblings[str(Path(file).parent)] += path.name != "__init__.py"
        functions |= {f"{file}:{one.lineno} {one.name}": _length(one) for one in _functions(tree)}
        public += sum(isinstance(one, Definition) and not one.name.startswith("_") for one in tree.body)
    return Figures(lines, siblings, functions, public)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def longest_chain(graph: Graph) -> tuple[str, ...]:
    """Return the longest chain of modules in which each needs the next; the graph has no cycle."""
    chains: dict[str, tuple[str, ...]] = {}
    for name in TopologicalSorter(graph).static_order():
        chains[name] = (name, *max((chains[need] for need in graph[name]), key=len, default=()))
    return max(chains.values(), key=len)


def shown(found: Figures, chain: tuple[str, ...]) -> str:
    """Return all figures as text."""
    middle, ninth, most = found.sizes()
    folder, modules = max(found.siblings.items(), key=lambda one: one[1])
    file, lines = max(found.lines.items(), key=lambda one: one[1])
    rooms = [f"{room} {count}" for room, count in found.rooms().items()]
    return "\n".join(
        (
            f"files {len(found.lines)}, lines {sum(found.lines.values())}, public names {found.public}",
            f"most modules in a folder: {modules} ({folder}); longest file: {lines} lines ({file})",
            f"functions {len(found.functions)}: median {middle:g} lines, 90th percentile {ninth:g}, longest {most}",
            f"longest import chain: {len(chain)} modules, {' > '.join((*chain[:3], '..', *chain[-2:]))}",
            f"lines per room: {', '.join(rooms)}",
        )
    )


if __name__ == "__main__":
    print(shown(figures(), longest_chain(imports_of(SOURCE, "horae"))))
