"""docs/testing.md: its programs run, and it documents every member of the runners."""

import re
import subprocess
import sys

import pytest

import horae.testing
from horae import App
from horae.testing import Inline
from horae.testing.serving import Server
from horae.testing.workflows import InlineWorkflow
from tests.docs.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "testing.md").read_text()
PROGRAMS = {re.match(r"# (\w+\.py)\n", block)[1]: block for block in blocks(PAGE, "python")}
INSIDE = {"answer", "id", "kept", "start", "stop", "cancelled"}  # internal or self-explanatory


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "shop.py"])
def test_the_programs_run(tmp_path, name):
    for each in ("shop.py", name):
        (tmp_path / each).write_text(PROGRAMS[each])
    line = [sys.executable, "-W", "error", name]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_name_is_there():
    def body() -> None: ...

    shown = [name for name in horae.testing.__all__ if name not in PAGE]
    members = {*dir(Inline(App().job(body))), *dir(InlineWorkflow), *dir(Server)}
    missing = [name for name in members - INSIDE if not name.startswith("_") and not re.search(rf"\b{name}\b", PAGE)]
    assert (shown, missing) == ([], [])
