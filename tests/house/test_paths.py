"""Texts name only files, folders and modules that exist."""

import re
from pathlib import Path

from tests.house.test_tree import ROOT, texts

SOURCE = ROOT / "src/horae"
LAYERS = "model|store|engine|server|features|worker|config|cli|client|testing|outbound|bench"
FOLDERS = rf"{LAYERS}|tests|docs|tools|deploy|examples|\.ci"

PATH = re.compile(rf"(?<![\w./@:=-])(?:{FOLDERS})/[\w./{{}},*-]*")
MODULE = re.compile(r"`(?:horae\.)?((?:model|store|engine|server|features)(?:\.\w+)+)(?:\(\))?`")
FILE = re.compile(r"`([\w-]+\.py)`")


def checked() -> dict[str, str]:
    """Return the pages for developers and all Python files; in users' pages, a dotted word may be a setting."""
    pages = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions/", "src/horae/", "bench/", "tests/")
    return {name: text for name, text in texts().items() if name.startswith(pages) and name.endswith((".md", ".py"))}


def is_path(path: str, beside: Path) -> bool:
    """Return whether a path exists in the repository, in the package or beside the file that names it."""
    if "{" in path:
        head, _, tail = path.partition("{")
        choices, closed, rest = tail.partition("}")
        return not closed or "," not in choices or all(is_path(head + one + rest, beside) for one in choices.split(","))
    bare = path.rstrip("/.,")
    return any(list(folder.glob(bare)) or (folder / f"{bare}.py").exists() for folder in (ROOT, SOURCE, beside))


def is_module(dotted: str) -> bool:
    """Return whether a dotted name is a module, or a name that its module mentions."""
    at = SOURCE
    for part in dotted.split("."):
        if not (at / part).is_dir():
            if (at / f"{part}.py").exists():
                at /= f"{part}.py"
                continue
            module = at / "__init__.py" if at.is_dir() else at
            return re.search(rf"\b{part}\b", module.read_text()) is not None
        at /= part
    return True


def missing() -> list[str]:
    files = {Path(name).name for name in texts()}
    found = []
    for name, text in checked().items():
        beside = (ROOT / name).parent
        gone = {path for path in PATH.findall(text) if not is_path(path, beside)}
        gone |= {module for module in MODULE.findall(text) if not is_module(module)}
        gone |= {file for file in FILE.findall(text) if file not in files}
        found += [f"{name}: {one}" for one in sorted(gone)]
    return found


def test_texts_name_only_paths_that_exist():
    assert missing() == []


def test_a_missing_path_is_reported():
    for path, there in (
        ("contract", True),
        ("gone", False),
        ("{contract,script}.py", True),
        ("{contract,gone}.py", False),
    ):
        assert is_path(f"store/{path}", SOURCE) is there
    for module, there in (
        ("contract", True),
        ("contract.Store.submit", True),
        ("gone", False),
        ("contract.Gone", False),
    ):
        assert is_module(f"store.{module}") is there
