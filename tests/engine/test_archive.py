"""The archive: what is not kept any more lies in files, is read back, and is never lost or doubled."""

import zlib
from uuid import UUID

import msgspec
import pytest
from msgspec import Raw

from horae.engine.archive import archiver as archiving
from horae.engine.node import Node
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, VirtualClock
from horae.model.erasure import Which
from horae.model.principal import LOCAL
from horae.model.protocol import Submit
from horae.store.contract import Store
from horae.store.driver import Driver

DAY = 86_400 * SECOND


@pytest.fixture
async def node(driver: Driver, env: Env, tmp_path):
    settings = EngineSettings(retention=10 * DAY, artifacts=str(tmp_path / "artifacts"))
    node = Node(env, Store(driver, env), settings)
    await node.prepare()
    return node


async def ended(node: Node, *customers: str, parent: UUID | None = None) -> list[str]:
    """Executions that were cancelled before they began."""
    given = [Raw(msgspec.json.encode({"customer": name})) for name in customers]
    wanted = [Submit(job="report", params=params, delay=3600 * SECOND) for params in given]
    receipts = await node.submitter.submit(1, wanted, origin="submit", parent=parent)
    for receipt in receipts:
        await node.executions.cancel(1, receipt.execution_id)
    return [str(receipt.execution_id) for receipt in receipts]


async def archive_all(node: Node, which: object = True) -> None:
    await node.namespaces.edit(LOCAL, "default", {"archive": which})


async def round_of(node: Node) -> None:
    while not await node.archiver.step():
        pass
    node.archiver._walk_at.clear()


async def archived(node: Node, **filters) -> list[str]:
    """All that the archive has, page by page."""
    found, cursor = [], None
    while True:
        page = await node.archive.list(1, limit=2, cursor=cursor, **filters)
        found += [str(one.execution_id) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def live(node: Node) -> list[str]:
    return [str(one.execution_id) for one in (await node.executions.list(1)).items]


async def test_what_is_over_goes_to_a_file_and_is_read_back(node: Node, clock: VirtualClock, tmp_path):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    old = await ended(node, "ada", "bob", "cleo")
    clock.advance(11 * DAY)
    fresh = await ended(node, "dora")
    await archive_all(node)

    await node.sweeper._forget_executions(node.env.now())
    assert set(await live(node)) == {*old, *fresh}  # nobody but the archiver lets go of it
    await round_of(node)

    assert await live(node) == fresh
    assert await archived(node) == old[::-1]
    assert await archived(node, job="report", status="cancelled") == old[::-1]
    assert await archived(node, status="failed") == []
    (one,) = (await node.archive.list(1, limit=1)).items
    assert msgspec.json.decode(one.params)["customer"] == "cleo"
    (file,) = (tmp_path / "artifacts" / "archive" / "1").iterdir()
    lines = zlib.decompress(file.read_bytes(), 31).splitlines()
    assert [msgspec.json.decode(line)["executionId"] for line in lines] == old[::-1]
    await round_of(node)
    assert await archived(node) == old[::-1]


async def test_only_the_outcomes_that_are_named_are_archived(node: Node, clock: VirtualClock):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node, ["failed"])
    await ended(node, "ada")
    clock.advance(11 * DAY)

    await round_of(node)

    assert await live(node) == []
    assert await archived(node) == []


async def test_a_place_that_is_out_of_order_loses_nothing(node: Node, clock: VirtualClock, monkeypatch):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)

    async def broken(location, pieces):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(node.archiver._place, "write", broken, raising=False)
        await round_of(node)
    assert await live(node) == old
    assert await archived(node) == []

    await round_of(node)
    assert await live(node) == []
    assert await archived(node) == old


async def test_what_cannot_be_read_is_not_forgotten(node: Node, clock: VirtualClock, monkeypatch):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)

    def nothing(refs):
        return {}
        yield

    with monkeypatch.context() as patched:
        patched.setattr(archiving.reads, "by_ids", nothing)
        await round_of(node)
    assert await live(node) == old
    assert await archived(node) == []


async def test_a_server_that_dies_after_the_file_doubles_nothing(node: Node, clock: VirtualClock, monkeypatch):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada", "bob")
    clock.advance(11 * DAY)

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(archiving.archives, "put", dies)
        with pytest.raises(KeyboardInterrupt):
            await round_of(node)
    assert set(await live(node)) == set(old)

    await round_of(node)
    assert await archived(node) == old[::-1]


async def test_somebodys_data_is_erased_from_files(node: Node, clock: VirtualClock, tmp_path):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada", "bob")
    clock.advance(11 * DAY)
    await round_of(node)

    done = await node.erasures.erase(1, Which(params={"customer": "ada"}), None, 100)

    assert done.erased == 1
    assert await archived(node) == old[::-1]
    (file,) = (tmp_path / "artifacts" / "archive" / "1").iterdir()
    content = zlib.decompress(file.read_bytes(), 31)
    assert b"ada" not in content
    assert b"bob" in content
    assert await node.archive.drop_some(1, archiving.archives.LAST) == (1, False)
    assert await archived(node) == []
    assert not (tmp_path / "artifacts" / "archive" / "1").exists()


@pytest.mark.parametrize("lies", ["in a file", "in the store"])
async def test_what_somebodys_execution_submitted_is_erased_from_files_too(node: Node, clock: VirtualClock, lies: str):
    await node.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    wanted = Submit(job="report", params=Raw(b'{"customer":"ada"}'), delay=3600 * SECOND)
    (receipt,) = await node.submitter.submit(1, [wanted], origin="submit")
    parent = receipt.execution_id
    (child,) = await ended(node, "letters of ada", parent=parent)
    (below,) = await ended(node, "a letter of ada", parent=UUID(child))
    if lies == "in a file":
        await node.executions.cancel(1, parent)
    clock.advance(11 * DAY)
    await round_of(node)
    assert (str(parent) in await archived(node)) == (lies == "in a file")
    assert below in await archived(node)
    if lies == "in the store":
        await node.executions.cancel(1, parent)

    done = await node.erasures.erase(1, Which(params={"customer": "ada"}), None, 100)

    assert done.erased == 3
    assert "ada" not in str((await node.archive.list(1)).items)
    assert (await node.erasures.erase(1, Which(params={"customer": "ada"}), None, 100)).erased == 0
