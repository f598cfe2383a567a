"""Import every module of a package in a fresh interpreter, and record which modules each needs for its import.

`python -m tests.house.importing FOLDER PACKAGE` prints that as JSON. A module needs every module that is imported while
its body runs, by a statement or a call, and the packages around those. Imports for type checkers do not count.

In a graph without a cycle every module can be imported alone, because its requirements are complete before it
continues. In a cycle, some module is used half initialized, and whether that fails depends on which module is imported
first.
"""

import builtins
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

Graph = Mapping[str, tuple[str, ...]]
ROOT = Path(__file__).parents[2]


class Recorder:
    """A replacement for the import statement and the loader of source files."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.needs: dict[str, set[str]] = {}
        self._running: list[str] = []
        self._import, self._exec = builtins.__import__, SourceFileLoader.exec_module
        self._import_module = importlib.import_module

    def install(self) -> None:
        recorder = self
        builtins.__import__ = self.statement  # type: ignore[assignment]
        importlib.import_module = self.call

        def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
            recorder.run(loader, module)

        SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]

    def run(self, loader: SourceFileLoader, module: ModuleType) -> None:
        """Run a module's body; the module needs whatever is imported meanwhile."""
        name = module.__name__
        self._running.append(name)
        if self._is_ours(name):
            self.needs.setdefault(name, set())
        try:
            self._exec(loader, module)
        finally:
            self._running.pop()

    def statement(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        full = resolve_name("." * level + name, globals["__package__"]) if level else name
        self._note(full, *(f"{full}.{one}" for one in fromlist or ()))
        return self._import(name, globals, locals, fromlist, level)

    def call(self, name: str, package: str | None = None) -> ModuleType:
        self._note(resolve_name(name, package))
        return self._import_module(name, package)

    def _note(self, *names: str) -> None:
        """Record a requirement. Packages around the running module are left out: they always start before it."""
        if not self._running or not self._is_ours(self._running[-1]):
            return
        running = self._running[-1]
        begun = {running, *_around(running)}
        for name in filter(self._is_ours, names):
            self.needs[running] |= {name, *_around(name)} - begun
        self.needs[running] |= {running} & {*names[1:]}  # itself, half made

    def _is_ours(self, name: str) -> bool:
        return name == self.package or name.startswith(f"{self.package}.")

    def graph(self) -> dict[str, list[str]]:
        """Return the modules that each module needs; for `from x import y` both, if `x.y` is a module."""
        return {name: sorted(needs & self.needs.keys()) for name, needs in sorted(self.needs.items())}


def _around(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


def record(folder: str, package: str) -> dict[str, list[str]]:
    sys.path.insert(0, folder)
    recorder = Recorder(package)
    recorder.install()
    for name in _modules(Path(folder), package):
        with suppress(ImportError):  # from a cycle, which the graph shows; otherwise the next import fails
            importlib.import_module(name)
    return recorder.graph()


def _modules(folder: Path, package: str) -> list[str]:
    paths = (folder / package).rglob("*.py")
    names = (path.relative_to(folder).with_suffix("").parts for path in paths)
    return sorted(".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in names)


@cache
def imports_of(folder: Path, package: str) -> Graph:
    """Record imports in a new process, in which nothing has been imported yet."""
    command = [sys.executable, "-m", "tests.house.importing", str(folder), package]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: tuple(needs) for name, needs in json.loads(done.stdout).items()}


if __name__ == "__main__":
    print(json.dumps(record(*sys.argv[1:])))
