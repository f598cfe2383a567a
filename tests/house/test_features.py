"""Features respect their declarations: each imports another only if its `Feature(uses=...)` lists it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from horae.feature import Feature, installed

SOURCE = Path(__file__).parents[2] / "src"
PREFIX = "horae.features."
NAMES = [feature.name for feature in installed()]


def imported(path: Path) -> Iterator[str]:
    """Yield the imports of a module, including those in functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def features_in(path: Path) -> set[str]:
    """Return the features from which a module imports."""
    return {name.removeprefix(PREFIX).partition(".")[0] for name in imported(path) if name.startswith(PREFIX)}


@pytest.mark.parametrize("feature", installed(), ids=NAMES)
def test_a_feature_imports_only_declared_features(feature: Feature):
    folder = SOURCE / "horae" / "features" / feature.name
    used = set[str]().union(*(features_in(path) for path in folder.rglob("*.py"))) - {feature.name}
    assert used == set(feature.uses)


@pytest.mark.parametrize("feature", installed(), ids=NAMES)
def test_a_feature_is_listed_after_the_features_it_uses(feature: Feature):
    assert set(feature.needs) <= set(feature.uses) <= set(NAMES[: NAMES.index(feature.name)])


def test_every_folder_of_features_is_installed():
    folders = {path.parent.name for path in (SOURCE / "horae" / "features").glob("*/__init__.py")}
    assert folders == set(NAMES)


def test_imports_of_features_are_found_everywhere(tmp_path: Path):
    module = tmp_path / "module.py"
    module.write_text("def late():\n    from horae.features.alerts import part\n    import horae.features.users.part\n")
    assert features_in(module) == {"alerts", "users"}
