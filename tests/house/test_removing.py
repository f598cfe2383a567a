"""The rehearsal of CONTRIBUTING.md: alerts are one folder and three lines in two files, and can be removed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
LINES = {
    "features/__init__.py": ['    "alerts",\n'],
    "client/client.py": ["from horae.features.alerts.client import AlertsResource\n", "    alerts: AlertsResource\n"],
}
EACH_MODULE = """
from importlib import import_module
from pathlib import Path

import horae

root = Path(horae.__file__).parent
for path in root.rglob("*.py"):
    if "migrations" not in path.parts:
        import_module(".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"))
"""
A_JOB = """
from horae.client.app import App
from horae.testing import server

app = App()

@app.job
def double(n: int) -> int:
    return 2 * n

with server(app) as horae:
    assert horae.sync.run("double", n=21).result == 42
"""


@pytest.fixture(scope="module")
def without_alerts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the package without alerts."""
    copy = tmp_path_factory.mktemp("removed")
    ignored = shutil.ignore_patterns("alerts", "__pycache__")
    shutil.copytree(SOURCE / "horae", copy / "horae", ignore=ignored)
    for name, lines in LINES.items():
        path = copy / "horae" / name
        text = path.read_text()
        for line in lines:
            assert text.count(line) == 1, line
            text = text.replace(line, "")
        path.write_text(text)
    return copy


def run(package: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", [EACH_MODULE, A_JOB], ids=["every module imports", "a job runs"])
def test_the_package_works_without_the_folder_of_alerts(without_alerts: Path, program: str):
    assert run(without_alerts, "-c", f"import horae; assert horae.__file__.startswith({str(without_alerts)!r})") == ""
    run(without_alerts, "-c", program)


def test_the_help_no_longer_names_alerts(without_alerts: Path):
    told = run(without_alerts, "-m", "horae.cli.main", "--help")
    assert "  overview " in told
    assert "alerts" not in told
