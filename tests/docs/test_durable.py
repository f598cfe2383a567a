"""docs/durable.md: its programs run as described."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from horae.worker.code.transactions import STEPS_TABLE
from tests.docs.pages import ROOT, blocks, section
from tests.examples.test_examples import run, running
from tests.waiting import eventually

PAGE = (ROOT / "docs" / "durable.md").read_text()
PROGRAMS = {re.match(r"# (\w+)\.py\n", block)[1]: block for block in blocks(PAGE, "python")}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Import the programs of the page as modules."""
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield import_module
    for name in PROGRAMS:
        sys.modules.pop(name, None)


async def test_an_order_waits_for_a_decision_and_continues(programs):
    orders = programs("orders")
    async with running(orders.app) as client:
        cheap = await run(client, "order", item="flute", price=20)
        assert cheap.result == "receipt 1: 20"

        dear = await client.submit("order", {"item": "piano", "price": 900})

        async def waits():
            found = await client.executions.get(dear.id)
            assert (found.status, found.raw["reason"]) == ("running", "signal")
            return found

        await eventually(waits)
        held = (await client.executions.explain(dear.id)).raw["blockers"][0]
        assert "decision" in held["message"]
        assert (await client.executions.signal(dear.id, "decision", {"approved": True})).delivered
        done = await client.executions.wait(dear.id, timeout=30)
        assert (done.result, orders.receipts) == ("receipt 2: 900", ["receipt 1: 20", "receipt 2: 900"])


async def test_a_loop_continues_from_its_checkpoint(programs):
    async with running(programs("counting").app) as client:
        assert (await run(client, "count", rows=350)).result == sum(range(350))


async def test_a_booking_commits_with_its_memo(programs, tmp_path):
    async with running(programs("ledger").app) as client:
        for total in (5, 10):
            done = await run(client, "book", path=str(tmp_path / "own.db"), account="ada", amount=5)
            assert done.result == total


def test_the_tests_of_users_run(programs, tmp_path):
    subprocess.run([sys.executable, "test_orders.py"], cwd=tmp_path, check=True)


def test_the_table_on_the_page_is_the_created_one():
    assert blocks(section(PAGE, "In your own database"), "sql")[0].strip() == STEPS_TABLE
