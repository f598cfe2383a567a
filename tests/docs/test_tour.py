"""The tour of README.md, as a user follows it: its commands are run unchanged."""

import json
import re

import pytest

from tests.docs.folder import Folder
from tests.docs.pages import ROOT, blocks, section

pytestmark = pytest.mark.timeout(120)
README = (ROOT / "README.md").read_text()
TOUR = section(README, "A tour of five minutes")


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


def test_the_two_commands_are_in_the_makefile():
    commands = [line.split("#")[0].strip() for line in blocks(README, "sh")[0].strip().splitlines()]
    assert commands == ["make up", "make test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE) for command in commands)
