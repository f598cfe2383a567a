"""docs/environment.md, compared with a running command."""

import os
import sys
from pathlib import Path

import pytest

from horae import App
from horae.model.fleet.protocol import LOG_LIMIT
from horae.worker.attempt_log import MAX_LINE
from horae.worker.runners.command import MAX_ENV_VALUE, PASSED
from tests.docs.pages import ROOT, blocks, first_cells, section
from tests.examples.test_examples import run, running

PAGE = (ROOT / "docs" / "environment.md").read_text()
VARIABLES = set(first_cells(section(PAGE, "What it sees")))


@pytest.fixture
async def client():
    async with running(App()) as client:
        yield client


async def seen(client, **params) -> dict[str, str]:
    done = await run(client, "env", **params)
    lines = [line.text async for line in client.executions.logs(done.id)]
    return dict(line.split("=", 1) for line in lines if "=" in line)


async def test_every_variable_is_documented_and_no_other(client):
    await client.jobs.create("env", command="env", env={"OWN": "x"})
    small, large = await seen(client, day="2026-11-15"), await seen(client, text="x" * MAX_ENV_VALUE)
    ours = {name for name in small | large if name.startswith("HORAE_")}
    assert ours | {"TRACEPARENT", "TRACESTATE"} == VARIABLES
    assert ("HORAE_PARAMS" in small, "HORAE_PARAMS_FILE" in large) == (True, True)
    rest = {name for name in small if not name.startswith(("HORAE_", "LC_"))} - {"OWN"}
    assert rest <= set(PASSED)


def test_passed_variables_are_documented():
    assert [name for name in PASSED if f"`{name}`" not in PAGE] == []
    assert (MAX_ENV_VALUE, LOG_LIMIT, MAX_LINE) == (96 * 1024, 16 * 1024 * 1024, 16 * 1024)


@pytest.mark.parametrize("script", blocks(section(PAGE, "What it can say"), "sh"))
async def test_reports_of_a_command_reach_the_server(client, script):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    await client.jobs.create("says", command={"shell": f"set -e\n{script}"}, env={"PATH": path})
    done = await run(client, "says")
    assert (done.status, done.result, done.message) == ("success", {"rows": 1200}, "half of the files")


async def test_a_command_continues_from_its_checkpoint(client):
    (script,) = blocks(section(PAGE, "Checkpoints"), "sh")
    await client.jobs.create("parts", command={"shell": script}, retries=1, retry={"delay": "10ms"})
    done = await run(client, "parts")
    lines = [(line.attempt, line.text) async for line in client.executions.logs(done.id)]
    assert lines == [(1, "part 1"), (1, "part 2"), (1, "part 3"), (2, "part 4"), (2, "part 5")]
