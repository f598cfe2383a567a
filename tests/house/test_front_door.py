"""The threat list of the front door names existing tests, and covers all of its test modules."""

import re
from pathlib import Path

import horae.server.http

FOLDER = Path(__file__).parents[2] / "tests/server/http"
NAMED = re.compile(r"(test_\w+\.py)::(test_\w+)")
THREATS = (horae.server.http.__doc__ or "").split("\n- ")[1:]


def test_each_threat_names_a_test():
    assert THREATS
    assert [threat.partition("\n")[0] for threat in THREATS if not NAMED.search(threat)] == []


def test_each_test_of_the_threat_list_exists():
    named = [found for threat in THREATS for found in NAMED.findall(threat)]
    sources = {file: (FOLDER / file).read_text() for file, _ in named}
    assert [f"{file}::{test}" for file, test in named if f"def {test}(" not in sources[file]] == []


def test_each_test_module_of_the_front_door_belongs_to_a_threat():
    named = {file for threat in THREATS for file, _ in NAMED.findall(threat)}
    assert named == {path.name for path in FOLDER.glob("test_*.py")}
