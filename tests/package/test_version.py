"""One version everywhere."""

import re
import subprocess
import sys
from importlib.metadata import version

import horae
from tests.house.test_tree import ROOT

ENTRY = re.compile(r"^## (?:Unreleased: )?(\d+\.\d+\.\d+)\b", re.MULTILINE)


def test_the_changelog_the_package_and_the_command_have_one_version():
    newest = ENTRY.search((ROOT / "CHANGELOG.md").read_text())
    told = subprocess.run([sys.executable, "-m", "horae.cli.main", "--version"], capture_output=True, text=True)

    assert newest is not None
    assert newest[1] == horae.__version__ == version("horae")
    assert told.stdout == f"horae {horae.__version__}\n"
