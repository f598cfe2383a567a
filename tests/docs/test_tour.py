"""README.md's tour, as somebody follows it: its commands are run as they stand there."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, section

pytestmark = pytest.mark.timeout(120)
README = (ROOT / "README.md").read_text()
TOUR = section(README, "A tour of five minutes")
DEFAULT_URL = "http://127.0.0.1:8420"
CURL = """#!{python}
# As much of curl as the tour uses, where there is none.
import argparse, urllib.request
parser = argparse.ArgumentParser()
for flag in ("-X", "-H", "-d"):
    parser.add_argument(flag)
parser.add_argument("-s", action="store_true")
parser.add_argument("url")
a = parser.parse_args()
name, _, value = a.H.partition(": ")
request = urllib.request.Request(a.url, a.d and a.d.encode(), {{name: value}}, method=a.X or ("POST" if a.d else "GET"))
print(urllib.request.urlopen(request).read().decode(), end="")
"""


class Folder:
    """Where somebody follows the tour: a folder, an environment, and at times a server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tools = path / "tools"
        tools.mkdir()
        if shutil.which("curl") is None:
            (tools / "curl").write_text(CURL.format(python=sys.executable))
            (tools / "curl").chmod(0o755)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
        places = [str(Path(sys.executable).parent), str(tools), clean["PATH"]]
        self.env = clean | {"PATH": os.pathsep.join(places)}
        self.url = ""

    @contextmanager
    def up(self, command: str) -> Iterator[None]:
        """What the tour leaves running; only the port differs, so that two runs do not meet."""
        process = subprocess.Popen(
            command.split(), cwd=self.path, env=self.env | {"HORAE_PORT": "0"}, stdout=subprocess.PIPE, text=True
        )
        try:
            words = ""
            while "Ctrl-C stops it" not in words and (line := process.stdout.readline()):
                words += line
            self.url = re.search(r"is up at (\S+)", words)[1]
            yield
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()

    def run(self, script: str) -> str:
        """A block of the tour, as it is typed into the other terminal."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(DEFAULT_URL, self.url)],
            cwd=self.path,
            env=self.env | {"HORAE_URL": self.url},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


def test_the_tour(folder):
    install, start = blocks(section(README, "Install"), "sh")[0].strip().splitlines()
    assert install.startswith("pip install .")
    with folder.up(start):
        (typed,) = blocks(section(TOUR, "The command line"), "sh")
        said = folder.run(typed)
        assert "\nhello\n" in said
        assert said.count(": success after") == 2
        (typed,) = blocks(section(TOUR, "HTTP"), "sh")
        answers = [json.loads(part) for part in re.split(r"(?<=\})(?=\{\")", folder.run(typed))]
    extract, report, triggered, read = answers
    assert (extract["status"], report["status"], triggered["status"]) == ("idle", "scheduled", "queued")
    assert (read["jobId"], read["nextFireAt"][10:]) == (report["jobId"], "T00:00:00Z")

    module, program = blocks(section(TOUR, "Python"), "python")
    restart, typed = blocks(section(TOUR, "Python"), "sh")
    (folder.path / "jobs.py").write_text(module)
    (folder.path / "submit.py").write_text(program)
    with folder.up(restart):
        assert "gathering the news of 2026-11-15" in folder.run(typed)
        for _ in range(2):
            assert folder.run("python submit.py") == "success digest of 2026-11-15\n"
        listed = json.loads(folder.run("horae executions list --job digest -o json"))
    assert [one["key"] for one in listed["items"]] == ["digest-2026-11-15", None]


def test_the_two_commands_are_those_of_the_makefile():
    commands = [line.split("#")[0].strip() for line in blocks(README, "sh")[0].strip().splitlines()]
    assert commands == ["make up", "make test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE) for command in commands)
