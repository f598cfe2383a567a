"""Features keep to what they declare: each imports another only where its `Feature(uses=...)` says so."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from horae.feature import Feature, installed

SOURCE = Path(__file__).parents[2] / "src"
PREFIX = "horae.features."
NAMES = [feature.name for feature in installed()]


def imported(path: Path) -> Iterator[str]:
    """Yield what a module imports, in functions as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def features_in(path: Path) -> set[str]:
    """The features that a module imports something of."""
    return {name.removeprefix(PREFIX).partition(".")[0] for name in imported(path) if name.startswith(PREFIX)}


@pytest.mark.parametrize("feature", installed(), ids=NAMES)
def test_a_feature_imports_the_features_that_it_says_it_uses_and_no_others(feature: Feature):
    folder = SOURCE / "horae" / "features" / feature.name
    used = set[str]().union(*(features_in(path) for path in folder.rglob("*.py"))) - {feature.name}
    assert used == set(feature.uses)


@pytest.mark.parametrize("feature", installed(), ids=NAMES)
def test_a_feature_stands_after_those_that_it_uses(feature: Feature):
    assert set(feature.needs) <= set(feature.uses) <= set(NAMES[: NAMES.index(feature.name)])


def test_every_folder_of_features_is_installed():
    folders = {path.parent.name for path in (SOURCE / "horae" / "features").glob("*/__init__.py")}
    assert folders == set(NAMES)


def test_imports_of_features_are_seen_wherever_they_stand(tmp_path: Path):
    module = tmp_path / "module.py"
    module.write_text("def late():\n    from horae.features.alerts import part\n    import horae.features.users.part\n")
    assert features_in(module) == {"alerts", "users"}
