"""Names and docstrings that a reader can guess: no class name twice, no docstring that begins with a stand-in word."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "horae"
STAND_IN = re.compile(
    r"(what|who|whoever|whatever|whichever|whose|whom|whether|those|that which|how|of)\b(?! many| much| long)",
    re.IGNORECASE,
)
RIDDLE = re.compile(r"test_(what|who|whoever|whatever|whose|those|how|of)_")
Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def trees(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def documented(tree: ast.Module) -> Iterator[tuple[Node, str]]:
    for node in ast.walk(tree):
        if isinstance(node, Node):
            text = ast.get_docstring(node)
            if text:
                yield node, text


def stand_ins(tree: ast.Module) -> list[str]:
    return [text for _, text in documented(tree) if STAND_IN.match(text)]


def test_no_two_public_classes_share_a_name():
    places = defaultdict(list)
    for path, tree in trees(SOURCE):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert twice == {}, "Give one of them a name that says what sets it apart."


def test_docstrings_name_the_noun():
    found = [f"{path}: {text.splitlines()[0]}" for path, tree in trees(SOURCE) for text in stand_ins(tree)]
    assert found == [], "Begin with a verb (functions) or with the noun itself."


def test_test_names_state_a_behaviour():
    found = [
        f"{path}: {node.name}"
        for path, tree in trees(ROOT / "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and RIDDLE.match(node.name)
    ]
    assert found == [], "Name the subject: test_late_runs_are_reported, not test_what_is_late_is_told."


@pytest.mark.parametrize("text", ["What a rule finds.", "Whose turn it is.", "Of channels the newest."])
def test_a_stand_in_word_is_noticed(text: str):
    assert stand_ins(ast.parse(f'"""{text}"""'))


@pytest.mark.parametrize("text", ["The findings of a rule.", "How many items failed.", "Officially supported zones."])
def test_plain_words_are_not_noticed(text: str):
    assert not stand_ins(ast.parse(f'"""{text}"""'))
