"""docs/sdk.md: its programs run, and every name of the SDK is documented."""

import re

import pytest

import horae
from horae.client.client import Client
from horae.client.options import JobOptions
from horae.client.submission_options import OF_CALLS
from horae.worker.code.context import AttemptFacts, Context, SyncContext
from tests.docs.folder import Folder
from tests.docs.pages import ROOT, blocks, section

PAGE = (ROOT / "docs" / "sdk.md").read_text()
PROGRAMS = {re.match(r"# (\w+\.py)\n", block)[1]: block for block in blocks(PAGE, "python")}


@pytest.mark.timeout(120)
def test_the_programs_run(tmp_path):
    folder = Folder(tmp_path)
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    with folder.up("horae up --app jobs:app"):
        followed = folder.run("python follow.py").splitlines()
        plain = folder.run("python plain.py").splitlines()
    assert followed[:2] == ["success {'news': 1}", "[1, 2, 3]"]
    assert followed[2:] == ["1 INFO keeping 1", "2 INFO keeping 1", "['clean_up', 'digest']"]
    assert plain[:3] == ["2", "3", "2"]
    assert plain[3].startswith('No job named "clean-up"')


@pytest.mark.timeout(120)
def test_a_workflow_chooses_runs_a_program_and_sends_a_request(tmp_path):
    (tmp_path / "shipping.py").write_text(PROGRAMS["shipping.py"])
    (tmp_path / "ask.py").write_text(
        "from shipping import app, ship\n"
        "done = app.client.sync.executions.wait(ship.sync.submit(order=2).id, timeout=60)\n"
        "graph = app.client.sync.executions.graph(done.id)\n"
        "print(done.status, done.result, sorted((node['step'], node['status']) for node in graph['nodes']))\n"
    )
    folder = Folder(tmp_path)
    with folder.up("horae up --app shipping:app"):
        said = folder.run("python ask.py").strip()
    states = {"by_post": "skipped", "by_truck": "success", "command": "success", "health": "failed"}
    states |= {"switch": "success", "weigh": "success"}
    assert said == f"success {{'kilos': 60}} {sorted(states.items())}"


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def test_every_name_is_there():
    assert [name for name in horae.__all__ if not re.search(rf"\b{name}\b", PAGE) and name != "__version__"] == []
    options = ("name", "batch", *JobOptions.__annotations__)
    assert [name for name in (*options, *OF_CALLS) if f"`{name}`" not in PAGE and f"`{name}=" not in PAGE] == []


def test_every_member_of_the_context_is_documented():
    context = Context(AttemptFacts(execution_id=None, job="", attempt=1, token=1, failures=0, scheduled_at=0), None)
    text = section(PAGE, "Inside a running function")
    members = {*public(context), *public(context.log), *public(SyncContext)}
    assert [name for name in members if not re.search(rf"\b{name}\b", text)] == []


def test_every_member_of_the_client_is_documented():
    client = Client("http://127.0.0.1:9", "k")
    text = section(PAGE, "Submitting and following")
    members = {*public(client), *public(client.jobs), *public(client.executions), *public(client.dlq)}
    assert [name for name in members if f"`{name}`" not in text] == []
