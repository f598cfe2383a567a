"""Every example runs: its jobs are registered on a server in this process and submitted, and their results checked."""

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from horae import App, Client, EmbeddedTransport
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.server.app import Application
from horae.testing import Inline
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
KEY = "k" * 40
DAY = date(2026, 11, 14)


def load(name: str) -> Any:
    """Import an example as a worker does: as a module in its folder."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return import_module(name)


@asynccontextmanager
async def running(app: App) -> AsyncIterator[Client]:
    """Run a server and a worker with an app's jobs, without a socket."""
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    await node.tenancy.keys.ensure_admin_key(KEY)
    client = Client(key=KEY, transport=EmbeddedTransport(Application(node)))
    for document in app.definitions():
        await client.jobs.apply(document)
    worker = WorkerRuntime(node.env, WorkerSettings(name="w"), GatewayTransport(node), app)
    working = asyncio.ensure_future(worker.run())
    try:
        yield client
    finally:
        worker.abort()
        await working
        await client.close()
        await node.stop()


async def run(client: Client, job: str, **params: Any) -> Any:
    """Run one execution to its end."""
    execution = await client.submit(job, params)
    return await client.executions.wait(execution.id, timeout=30)


async def failed(client: Client, id: str) -> bool:
    """Tell whether an attempt of an execution has failed."""
    return any(attempt.outcome == "failed" for attempt in await client.executions.attempts(id))


def test_every_example_has_a_section_in_the_readme():
    readme = (EXAMPLES / "README.md").read_text()
    assert len(MODULES) == 10
    assert [name for name in MODULES if f"horae up --app {name}:app" not in readme] == []
    files = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
    assert files == ["order_saga.yaml", "tuning.yaml"]
    assert [name for name in files if f"horae apply -f {name}" not in readme] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_example_has_a_docstring(name):
    module = load(name)
    assert module.__doc__
    assert all(document["description"] for document in module.app.definitions())


async def test_the_etl_loads_a_day_and_reports_rejected_orders(tmp_path):
    app = load("nightly_etl").app
    warehouse = tmp_path / "warehouse.db"
    async with running(app) as client:
        for _ in range(2):
            done = await run(client, "nightly-etl", day=DAY, source=str(EXAMPLES / "data"), warehouse=str(warehouse))
            assert (done.status, done.result) == ("success", {"day": "2026-11-14", "loaded": 5, "rejected": 1})
        lines = [line.text async for line in client.executions.logs(done.id)]
        missing = await run(client, "nightly-etl", day=date(2026, 1, 1), source=str(tmp_path))
    assert lines == ["WARNING order 1004 has no quantity: one"]
    assert (missing.status, missing.attempt, missing.error.type) == ("failed", 1, "GiveUp")
    with closing(sqlite3.connect(warehouse)) as database:
        assert database.execute("SELECT count(*), round(sum(amount), 2) FROM orders").fetchone() == (5, 793.5)


async def test_a_retry_of_the_etl_does_not_read_the_file_again(tmp_path):
    source, warehouse = tmp_path / "orders-2026-11-14.csv", tmp_path / "later" / "warehouse.db"
    shutil.copy(EXAMPLES / "data" / source.name, source)
    async with running(load("nightly_etl").app) as client:
        await client.jobs.edit("nightly-etl", retry={"delay": "100ms"})
        params = {"day": DAY, "source": str(tmp_path), "warehouse": str(warehouse)}
        execution = await client.submit("nightly-etl", params)
        await eventually(lambda: failed(client, execution.id))
        source.unlink()
        warehouse.parent.mkdir()
        done = await client.executions.wait(execution.id, timeout=30)
    assert (done.status, done.result["loaded"]) == ("success", 5)


async def test_the_backup_is_intact_and_old_ones_are_deleted(tmp_path):
    shop, folder = tmp_path / "shop.db", tmp_path / "backups"
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("CREATE TABLE goods (name)")
        database.executemany("INSERT INTO goods VALUES (?)", [(f"lamp {i}",) for i in range(5000)])
    folder.mkdir()
    for day in range(1, 4):
        (folder / f"shop-2020010{day}T000000.db").touch()
    async with running(load("backup").app) as client:
        done = await run(client, "backup", database=str(shop), folder=str(folder), keep=2)
        absent = await run(client, "backup", database=str(tmp_path / "none.db"))
    assert (done.status, done.result["removed"], absent.status) == ("success", 2, "failed")
    assert min(path.name for path in folder.iterdir()) == "shop-20200103T000000.db"
    assert len(list(folder.iterdir())) == 2
    with closing(sqlite3.connect(done.result["copy"])) as database:
        assert database.execute("SELECT count(*) FROM goods").fetchone() == (5000,)


async def test_a_transfer_waits_for_approval_and_is_undone_when_the_deposit_fails(tmp_path):
    bank = str(tmp_path / "bank.db")
    async with running(load("money_transfer").app) as client:
        for name, balance in (("ada", 5000), ("bob", 0), ("cid", 10)):
            await run(client, "open-account", name=name, balance=balance, bank=bank)
        large = await client.submit("money-transfer", {"source": "ada", "target": "bob", "amount": 1200, "bank": bank})
        assert await client.executions.signal(large.id, "decision", {"approved": True})
        done = await client.executions.wait(large.id, timeout=30)
        nobody = await run(client, "money-transfer", source="ada", target="eve", amount=100, bank=bank)
        poor = await run(client, "money-transfer", source="cid", target="ada", amount=999, bank=bank)
    assert (done.result, nobody.raw["errorMessage"]) == ("done", "there is no account eve")
    assert poor.raw["errorMessage"] == "cid has less than 999"
    with closing(sqlite3.connect(bank)) as database:
        assert dict(database.execute("SELECT name, balance FROM accounts")) == {"ada": 3800, "bob": 1200, "cid": 10}


async def test_a_transfer_that_crashes_anywhere_moves_the_money_once(tmp_path):
    module = load("money_transfer")
    for crash in (1, 2):
        bank = str(tmp_path / f"bank{crash}.db")
        for name, balance in (("ada", 5000), ("bob", 0)):
            module.open_account(name, balance, bank)
        transfer = Inline(module.transfer, crash_after=crash, source="ada", target="bob", amount=1200, bank=bank)
        transfer.signal("decision", {"approved": True})
        assert await transfer.finish() == "done"
        with closing(sqlite3.connect(bank)) as database:
            assert dict(database.execute("SELECT name, balance FROM accounts")) == {"ada": 3800, "bob": 1200}


async def test_the_report_is_written_for_every_region(tmp_path):
    module, warehouse = load("report"), tmp_path / "warehouse.db"
    etl = load("nightly_etl")
    etl.load(warehouse, DAY, etl.transform(etl.extract(EXAMPLES / "data", DAY))[0])
    async with running(module.app) as client:
        done = await run(client, "daily-report", day=DAY, warehouse=str(warehouse), folder=str(tmp_path / "reports"))
        assert done.status == "success"
        regions = await client.executions.wait_all(done.result, timeout=30)
    assert [region.result["total"] for region in regions] == [395.8, 338.0, 59.7]
    assert {region.parent for region in regions} == {done.id}
    assert (tmp_path / "reports" / "2026-11-14-north.txt").read_text().splitlines() == [
        "Sales of 2026-11-14, north",
        "",
        "chair            356.00",
        "lamp              39.80",
    ]


async def test_the_digest_is_sent_once_to_everybody_with_news(tmp_path):
    outbox = tmp_path / "outbox"
    async with running(load("digest").app) as client:
        params = {"day": DAY, "news": str(EXAMPLES / "data" / "news.json"), "outbox": str(outbox)}
        assert [(await run(client, "digest", **params)).result for _ in range(2)] == [2, 2]
        sent = await client.jobs.executions("send-digest")
        await client.executions.wait_all([one.id for one in sent], timeout=30)
    assert sorted(path.name for path in outbox.iterdir()) == [
        "2026-11-14-ada@example.com.eml",
        "2026-11-14-grace@example.com.eml",
    ]
    assert len(sent) == 2
    assert b"Subject: 2 news on 2026-11-14" in (outbox / "2026-11-14-ada@example.com.eml").read_bytes()


class Api(BaseHTTPRequestHandler):
    """An API that is busy at first, then has two items, then no new ones."""

    answers: list[int]

    def do_GET(self) -> None:
        known = self.headers["If-None-Match"] == '"v2"'
        status = 404 if self.path == "/gone" else self.answers.pop(0) if self.answers else 304 if known else 200
        body = json.dumps([{"id": 1, "name": "lamp"}, {"id": 2, "name": "chair"}]).encode() if status == 200 else b""
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("ETag", '"v2"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


async def test_polling_waits_as_requested_and_submits_new_items(tmp_path):
    server = HTTPServer(("127.0.0.1", 0), type("Busy", (Api,), {"answers": [429, 503]}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        async with running(load("api_polling").app) as client:
            await client.jobs.edit("poll", schedule=None)
            first = await run(client, "poll", url=f"{url}/orders", state=str(tmp_path / "state.json"))
            second = await run(client, "poll", url=f"{url}/orders", state=str(tmp_path / "state.json"))
            gone = await run(client, "poll", url=f"{url}/gone", state=str(tmp_path / "other.json"))
            handled = await client.jobs.executions("handle-item")
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
    assert (first.result, first.retry_count, second.result) == ({"new": 2}, 2, {"new": 0})
    assert (gone.status, gone.error.type, gone.retry_count) == ("failed", "GiveUp", 0)
    assert sorted(one.key for one in handled) == ["item-1", "item-2"]
