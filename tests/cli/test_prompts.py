"""Commands that ask a question, run without a terminal."""

from pathlib import Path

import pytest

from horae.cli.main import cli
from horae.cli.prompts import confirm
from horae.cli.reference import walk
from horae.errors import BadInput
from tests.cli.fake_api import FakeApi, page, run
from tests.cli.test_executions import LETTER
from tests.cli.test_jobs import JOB

API = {
    "GET /jobs": page(JOB),
    "GET /queues/reports": {"name": "reports", "queued": 3},
    "GET /dlq": page(LETTER),
}
ASKING = {
    "db new-epoch": ((), "--yes"),
    "db restore": (("horae.backup", "--replace"), "--yes"),
    "dlq discard": (("--job", "daily"), "--yes"),
    "dlq retry": (("--job", "daily"), "--yes"),
    "executions erase": (("--tag", "customer=c-17"), "--yes"),
    "jobs delete": (("--tag", "demo"), "--yes"),
    "namespaces erase": (("billing",), "--confirm billing"),
    "queues purge": (("reports",), "--yes"),
    "users create": (("ada", "--role", "editor"), "--password-stdin"),
    "users password": (("ada",), "--password-stdin"),
}
ANSWERS = {"yes", "confirm", "from_input"}  # parameters that answer in advance


def test_every_command_that_asks_is_tried_here():
    asking = {name for name, command in walk(cli) if ANSWERS & {parameter.name for parameter in command.params}}
    assert asking == set(ASKING)


@pytest.mark.parametrize("command", ASKING)
def test_without_an_answer_the_option_to_use_is_named_and_nothing_is_done(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given, option = ASKING[command]
    if command.startswith("db"):
        assert run(None, "db", "upgrade").exit_code == 0
        Path("horae.backup").touch()
    api = FakeApi(API)

    refused = run(api, *command.split(), *given)

    assert refused.exit_code == 2
    assert f"Give {option} to answer in advance." in refused.stderr
    assert "Aborted" not in refused.stderr
    assert {request.method for request in api.requests} <= {"GET"}


def test_a_closed_input_is_refused_in_the_same_way(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(BadInput, match="Give --yes to answer in advance"):
        confirm("Continue?")


def test_an_answer_may_come_through_a_pipe():
    api = FakeApi({**API, "DELETE /jobs/daily": {**JOB, "state": "deleted"}})

    assert run(api, "jobs", "delete", "--tag", "demo", input="y\n").exit_code == 0
    refused = run(api, "jobs", "delete", "--tag", "demo", input="n\n")
    assert (refused.exit_code, "Aborted!" in refused.stderr) == (1, True)
