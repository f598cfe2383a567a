"""The archive: expired executions are stored in files, can be read back, and are never lost or duplicated."""

import zlib
from itertools import pairwise
from uuid import UUID

import msgspec
import pytest
from msgspec import Raw

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, VirtualClock
from horae.errors import Busy
from horae.features.archive.engine import archiver as archiving
from horae.features.archive.engine import files as writing
from horae.features.archive.engine import reader as reading
from horae.features.archive.part import ArchivePart
from horae.features.artifacts.part import ArtifactsPart
from horae.features.artifacts.store import artifacts
from horae.features.erasure.model import EraseNamespace, ErasureSelection
from horae.features.erasure.part import ErasurePart
from horae.model.base.ids import parcel_of
from horae.model.fleet.submit import Submit
from horae.model.tenancy.principal import LOCAL
from horae.store.contract import Store
from horae.store.driver import Driver
from horae.store.executions.reads import housekeeping
from horae.store.expiry import expiry

DAY = 86_400 * SECOND


@pytest.fixture
async def node(driver: Driver, env: Env, tmp_path):
    settings = EngineSettings(retention=10 * DAY, artifacts=str(tmp_path / "artifacts"))
    node = ServerNode(env, Store(driver, env), settings)
    await node.prepare()
    return node


async def ended(node: ServerNode, *customers: str, parent: UUID | None = None) -> list[str]:
    """Return executions that were cancelled before they began."""
    given = [Raw(msgspec.json.encode({"customer": name})) for name in customers]
    wanted = [Submit(job="report", params=params, delay=3600 * SECOND) for params in given]
    receipts = await node.submitter.submit(1, wanted, origin="submit", parent=parent)
    for receipt in receipts:
        await node.work.executions.cancel(1, receipt.execution_id)
    return [str(receipt.execution_id) for receipt in receipts]


async def archive_all(node: ServerNode, which: object = True) -> None:
    await node.tenancy.namespaces.edit(LOCAL, "default", {"archive": which})


async def round_of(node: ServerNode) -> None:
    while not await node.part(ArchivePart).archiver.step():
        pass
    node.part(ArchivePart).archiver._walk_at.clear()
    node.part(ArchivePart).archiver._again_at = 0.0


async def test_a_file_is_written_and_read_in_bounded_pieces(node: ServerNode, monkeypatch):
    read = []
    by_ids = writing.reads.by_ids
    monkeypatch.setattr(writing.reads, "by_ids", lambda some: read.append(len(some)) or by_ids(some))
    monkeypatch.setattr(writing, "MOST_BYTES", 25_000)
    monkeypatch.setattr(reading, "MOST_BYTES", 25_000)
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    ids = []
    for _ in range(5):
        node.env.clock.advance(SECOND)
        ids += await ended(node, "x" * 10_000)
    node.env.clock.advance(11 * DAY)
    await round_of(node)

    pages, cursor = [], None
    while not pages or cursor is not None:
        page = await node.part(ArchivePart).reader.list(1, cursor=cursor)
        pages.append([str(one.execution_id) for one in page.items])
        cursor = page.next_cursor
    assert [id for page in pages for id in page] == sorted(ids, reverse=True)
    assert [len(page) for page in pages if page] == [3, 2]
    assert max(read) == 2


async def archived(node: ServerNode, **filters) -> list[str]:
    """Return all executions in the archive, page by page."""
    found, cursor = [], None
    while True:
        page = await node.part(ArchivePart).reader.list(1, limit=2, cursor=cursor, **filters)
        found += [str(one.execution_id) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def live(node: ServerNode) -> list[str]:
    return [str(one.execution_id) for one in (await node.work.executions.list(1)).items]


async def test_ended_executions_are_archived_and_read_back(node: ServerNode, clock: VirtualClock, tmp_path):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    old = await ended(node, "ada", "bob", "cleo")
    clock.advance(11 * DAY)
    fresh = await ended(node, "dora")
    await archive_all(node)

    await node.work.sweeper._forget_executions(node.env.now())
    assert set(await live(node)) == {*old, *fresh}  # only the archiver deletes it
    await round_of(node)

    assert await live(node) == fresh
    assert await archived(node) == old[::-1]
    assert await archived(node, job="report", status="cancelled") == old[::-1]
    assert await archived(node, status="failed") == []
    (one,) = (await node.part(ArchivePart).reader.list(1, limit=1)).items
    assert msgspec.json.decode(one.params)["customer"] == "cleo"
    (file,) = (tmp_path / "artifacts" / "archive" / "1").iterdir()
    lines = zlib.decompress(file.read_bytes(), 31).splitlines()
    assert [msgspec.json.decode(line)["executionId"] for line in lines] == old[::-1]
    await round_of(node)
    assert await archived(node) == old[::-1]


async def test_only_selected_outcomes_are_archived(node: ServerNode, clock: VirtualClock):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node, ["failed"])
    await ended(node, "ada")
    clock.advance(11 * DAY)

    await round_of(node)

    assert await live(node) == []
    assert await archived(node) == []


async def test_a_failing_archive_storage_loses_nothing(node: ServerNode, clock: VirtualClock, monkeypatch):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)

    async def broken(location, pieces):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(node.part(ArchivePart).archiver._place, "write", broken, raising=False)
        await round_of(node)
    assert await live(node) == old
    assert await archived(node) == []

    await round_of(node)
    assert await live(node) == []
    assert await archived(node) == old


async def test_unreadable_executions_are_not_deleted(node: ServerNode, clock: VirtualClock, monkeypatch):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)

    def nothing(refs):
        return {}
        yield

    with monkeypatch.context() as patched:
        patched.setattr(writing.reads, "by_ids", nothing)
        await round_of(node)
    assert await live(node) == old
    assert await archived(node) == []


async def test_a_crash_after_the_file_write_duplicates_nothing(node: ServerNode, clock: VirtualClock, monkeypatch):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
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


async def test_the_data_of_a_person_is_erased_from_files(node: ServerNode, clock: VirtualClock, tmp_path):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    before = node.env.now()
    old = await ended(node, "ada", "bob")
    clock.advance(11 * DAY)
    await round_of(node)

    done = await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)

    assert done.erased == 1
    assert await archived(node) == old[::-1]
    (file,) = (tmp_path / "artifacts" / "archive" / "1").iterdir()
    content = zlib.decompress(file.read_bytes(), 31)
    assert b"ada" not in content
    assert b"bob" in content
    assert await node.part(ArchivePart).reader.drop_some(1, before) == (0, False)
    # A file that was written later is dropped, too.
    assert await node.part(ArchivePart).reader.drop_some(1, before + DAY) == (1, False)
    assert await archived(node) == []
    assert not (tmp_path / "artifacts" / "archive" / "1").exists()


@pytest.mark.parametrize("lies", ["in a file", "in the store"])
async def test_child_executions_of_a_person_are_erased_from_files(node: ServerNode, clock: VirtualClock, lies: str):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    wanted = Submit(job="report", params=Raw(b'{"customer":"ada"}'), delay=3600 * SECOND)
    (receipt,) = await node.submitter.submit(1, [wanted], origin="submit")
    parent = receipt.execution_id
    (child,) = await ended(node, "letters of ada", parent=parent)
    (below,) = await ended(node, "a letter of ada", parent=UUID(child))
    if lies == "in a file":
        await node.work.executions.cancel(1, parent)
    clock.advance(11 * DAY)
    await round_of(node)
    assert (str(parent) in await archived(node)) == (lies == "in a file")
    assert below in await archived(node)
    if lies == "in the store":
        await node.work.executions.cancel(1, parent)

    done = await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)

    assert done.erased == 3
    assert all(bytes(one.params) == b'"(erased)"' for one in (await node.part(ArchivePart).reader.list(1)).items)
    assert (
        await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)
    ).erased == 0


@pytest.mark.parametrize("failing", ["write", "remove"])
async def test_a_repeated_erasure_finds_child_executions_in_files(
    node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch, failing: str
):
    """The storage fails for the second file that an erasure rewrites, or cannot remove the replaced files."""
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    (parent,) = await ended(node, "ada")
    clock.advance(6 * DAY)
    (child,) = await ended(node, "letters of ada", parent=UUID(parent))
    clock.advance(5 * DAY)
    await round_of(node)
    clock.advance(6 * DAY)
    await round_of(node)
    place, written = node.part(ErasurePart).erasures._archive._place, []
    write = place.write

    async def second_fails(location, pieces):
        written.append(location)
        if len(written) == 2:
            raise RuntimeError("connection refused")
        await write(location, pieces)

    async def fails(location):
        raise RuntimeError("connection refused")

    async def erase() -> int:
        return (
            await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)
        ).erased

    with monkeypatch.context() as patched:
        patched.setattr(place, failing, second_fails if failing == "write" else fails, raising=False)
        if failing == "write":
            with pytest.raises(Busy, match="cannot be rewritten"):
                await erase()
        else:
            assert await erase() == 2
    assert await erase() == (2 if failing == "write" else 0)

    shown = (await node.part(ArchivePart).reader.list(1)).items
    assert [(str(one.execution_id), bytes(one.params)) for one in shown] == [
        (child, b'"(erased)"'),
        (parent, b'"(erased)"'),
    ]
    await node.part(ArtifactsPart).sweeper.step()
    assert not any(b"ada" in content for content in files(tmp_path))


async def test_an_erasure_up_to_an_instant_includes_files_with_later_executions(
    node: ServerNode, clock: VirtualClock, tmp_path
):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    (old,) = await ended(node, "ada")
    clock.advance(SECOND)
    before = node.env.now()
    (new,) = await ended(node, "bob")
    clock.advance(11 * DAY)
    await round_of(node)
    request = EraseNamespace(confirm="default", before=before)
    erasures = node.part(ErasurePart).namespace_erasures

    done = await erasures.erase(LOCAL, "default", request)

    assert (done.executions, done.files, done.complete) == (1, 0, True)
    assert await archived(node) == [new, old]
    (content,) = files(tmp_path)
    assert (b"ada" in content, b"bob" in content) == (False, True)
    assert (await erasures.erase(LOCAL, "default", request)).executions == 0
    await damage(tmp_path, "cut off")
    assert not (await erasures.erase(LOCAL, "default", request)).complete


async def damage(tmp_path, how: str) -> str:
    """Damage the newest file of the archive and return its location."""
    newest = max((tmp_path / "artifacts" / "archive" / "1").iterdir())
    content = newest.read_bytes()
    hurt = {"cut off": content[:-12], "overwritten": content[:30] + b"\xff" * 30 + content[60:]}
    newest.unlink() if how == "gone" else newest.write_bytes(hurt[how])
    return f"archive/1/{newest.name}"


async def two_files(node: ServerNode, clock: VirtualClock) -> tuple[list[str], list[str]]:
    """Return the executions in an older file and in a newer file."""
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    older = await ended(node, "ada", "bob")
    clock.advance(11 * DAY)
    await round_of(node)
    newer = await ended(node, *(f"customer {n}" for n in range(20)))
    clock.advance(11 * DAY)
    await round_of(node)
    return older, newer


@pytest.mark.parametrize("how", ["cut off", "overwritten", "gone"])
async def test_a_damaged_file_is_named_and_later_files_are_still_read(
    node: ServerNode, clock: VirtualClock, tmp_path, how: str
):
    older, newer = await two_files(node, clock)
    location = await damage(tmp_path, how)

    page = await node.part(ArchivePart).reader.list(1, limit=100)

    found = [str(one.execution_id) for one in page.items]
    assert found[-2:] == older[::-1]
    assert set(found[:-2]) <= set(newer)  # its readable part is returned
    assert page.next_cursor is None
    (note,) = page.notes
    assert location in note
    done = await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)
    assert done.erased == 1
    assert done.unreadable_files == [location]
    if how != "gone":
        assert (tmp_path / "artifacts" / location).exists()  # it was neither rewritten nor lost


async def test_an_unreachable_archive_storage_is_reported(node: ServerNode, clock: VirtualClock, monkeypatch):
    await two_files(node, clock)

    async def away(location):
        raise RuntimeError("connection refused")
        yield

    monkeypatch.setattr(node.part(ArchivePart).reader._place, "read", away, raising=False)
    with pytest.raises(Busy, match="cannot be read"):
        await node.part(ArchivePart).reader.list(1)
    monkeypatch.setattr(node.part(ErasurePart).erasures._archive._place, "read", away, raising=False)
    with pytest.raises(Busy, match="cannot be read"):
        await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)


async def test_files_outside_the_searched_range_are_not_opened(node: ServerNode, clock: VirtualClock, monkeypatch):
    older, newer = await two_files(node, clock)
    await node.definitions.jobs.create(1, {"name": "other", "command": "true"})
    (receipt,) = await node.submitter.submit(1, [Submit(job="other", delay=3600 * SECOND)], origin="submit")
    await node.work.executions.cancel(1, receipt.execution_id)
    clock.advance(11 * DAY)
    await round_of(node)
    read, opened = node.part(ArchivePart).reader._place.read, []

    def counted(location):
        opened.append(location)
        return read(location)

    monkeypatch.setattr(node.part(ArchivePart).reader._place, "read", counted, raising=False)
    assert await archived(node, status="failed") == []
    assert await archived(node, job="nobody") == []
    assert await archived(node, until="2000-01-01T00:00:00Z") == []
    assert opened == []
    assert await archived(node, job="other", status="cancelled") == [str(receipt.execution_id)]
    other = (await node.definitions.jobs.get(1, "other")).job_id
    assert await archived(node, job=str(other)) == [str(receipt.execution_id)]
    assert len(set(opened)) == 1
    assert len(await archived(node, job="report")) == len(older) + len(newer)


async def test_a_full_archive_storage_is_retried_with_backoff_and_reported(
    node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch
):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)
    tries = []

    async def full(location, pieces):
        tries.append(clock.monotonic())
        path = tmp_path / "artifacts" / location
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await anext(aiter(pieces)))
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(node.part(ArchivePart).archiver._place, "write", full, raising=False)
        since = node.env.now()
        while len(tries) < 7:
            assert (await node.part(ArchivePart).archiver.step()) > 0
            clock.advance(int(archiving.LOOK) * SECOND)
        problem, at = await node.store.read(lambda: housekeeping.problem_of("archive"))
    waits = [round(later - earlier) for earlier, later in pairwise(tries)]
    assert waits == [30, 60, 120, 240, 480, 600]
    assert await live(node) == old
    assert node.part(ArchivePart).archiver.is_failing
    assert "No space left on device" in problem
    assert at == since
    assert not list((tmp_path / "artifacts").rglob("*.gz"))  # a partial file would fill the disk
    assert await node.store.read(lambda: artifacts.litter(node.env.now(), 10)) == []

    clock.advance(int(archiving.WALK) * SECOND)
    await round_of(node)
    assert await archived(node) == old
    assert not node.part(ArchivePart).archiver.is_failing
    assert await node.store.read(lambda: housekeeping.problem_of("archive")) is None


async def test_a_concurrently_deleted_file_loses_nothing(node: ServerNode, clock: VirtualClock, monkeypatch):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada")
    clock.advance(11 * DAY)
    write = node.part(ArchivePart).archiver._place.write

    async def slowly(location, pieces):
        await write(location, pieces)
        # The sweeper removes unreferenced files like this after a while.
        await node.part(ArchivePart).reader._place.remove(location)
        await node.store.write(lambda: artifacts.forget_deleted_locations([location]))

    with monkeypatch.context() as patched:
        patched.setattr(node.part(ArchivePart).archiver._place, "write", slowly, raising=False)
        await round_of(node)
    assert await live(node) == old
    await round_of(node)
    assert await archived(node) == old


def files(tmp_path) -> list[bytes]:
    """Return the contents of the archive's files."""
    return [zlib.decompress(file.read_bytes(), 31) for file in (tmp_path / "artifacts").rglob("*.gz")]


async def test_executions_erased_during_archiving_do_not_return(
    node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch
):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada", "bob")
    clock.advance(11 * DAY)
    write, receipts = node.part(ArchivePart).archiver._place.write, []

    async def slowly(location, pieces):
        await write(location, pieces)
        receipts.append(
            await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)
        )

    with monkeypatch.context() as patched:
        patched.setattr(node.part(ArchivePart).archiver._place, "write", slowly, raising=False)
        await round_of(node)
    assert [(one.erased, one.not_ended) for one in receipts] == [(1, [])]
    assert files(tmp_path) == []  # it is not referenced: it is deleted at once
    assert await node.store.read(lambda: artifacts.litter(node.env.now(), 10)) == []

    await round_of(node)
    assert await archived(node) == old[::-1]
    (content,) = files(tmp_path)
    assert b"ada" not in content
    assert b"bob" in content


async def test_two_concurrent_erasures_in_one_file_both_succeed(
    node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch
):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    old = await ended(node, "ada", "bob", "cleo")
    clock.advance(11 * DAY)
    await round_of(node)
    write = node.part(ErasurePart).erasures._archive._place.write

    async def second(location, pieces):
        monkeypatch.setattr(node.part(ErasurePart).erasures._archive._place, "write", write, raising=False)
        await write(location, pieces)
        assert (
            await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "bob"}), None, 100)
        ).erased == 1

    monkeypatch.setattr(node.part(ErasurePart).erasures._archive._place, "write", second, raising=False)
    done = await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)

    assert (done.erased, done.unreadable_files) == (1, [])
    assert await archived(node) == old[::-1]
    (content,) = files(tmp_path)
    assert (b"ada" in content, b"bob" in content, b"cleo" in content) == (False, False, True)


@pytest.mark.parametrize("moved", [1, 2])
async def test_a_file_moved_during_a_read_is_read_at_its_new_place(
    node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch, moved: int
):
    """The file is moved during a search, or while it is rewritten."""
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    await ended(node, "ada", "bob")
    clock.advance(11 * DAY)
    await round_of(node)
    read, reads = node.part(ErasurePart).erasures._archive._place.read, []

    async def late(location):
        reads.append(location)
        if len(reads) == moved:
            await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "bob"}), None, 100)
        async for piece in read(location):
            yield piece

    monkeypatch.setattr(node.part(ErasurePart).erasures._archive._place, "read", late, raising=False)
    done = await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "ada"}), None, 100)

    assert (done.erased, done.unreadable_files) == (1, [])
    (content,) = files(tmp_path)
    assert (b"ada" in content, b"bob" in content) == (False, False)


async def test_a_list_continues_in_a_rewritten_file(node: ServerNode, clock: VirtualClock, monkeypatch):
    older, newer = await two_files(node, clock)
    read = node.part(ArchivePart).reader._place.read

    async def late(location):
        monkeypatch.setattr(node.part(ArchivePart).reader._place, "read", read, raising=False)
        await node.part(ErasurePart).erasures.erase(1, ErasureSelection(params={"customer": "customer 3"}), None, 100)
        async for piece in read(location):
            yield piece

    monkeypatch.setattr(node.part(ArchivePart).reader._place, "read", late, raising=False)
    page = await node.part(ArchivePart).reader.list(1, limit=100)

    assert [str(one.execution_id) for one in page.items] == [*newer[::-1], *older[::-1]]
    assert page.notes == []


async def failing(node: ServerNode, clock: VirtualClock, monkeypatch) -> None:
    """Run a round that cannot read the executions to be archived."""
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    await ended(node, "ada")
    clock.advance(11 * DAY)

    async def broken(location, pieces):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(node.part(ArchivePart).archiver._place, "write", broken, raising=False)
        await round_of(node)
    assert node.part(ArchivePart).archiver.is_failing


async def test_a_server_without_the_duty_reports_no_problems(node: ServerNode, clock: VirtualClock, monkeypatch):
    await failing(node, clock, monkeypatch)
    clock.advance(archiving.TERM + SECOND)
    now, other = node.env.now(), node.env.new_id()
    assert await node.store.write(lambda: housekeeping.take_duty(archiving.DUTY, other, now, now + archiving.TERM))

    await node.part(ArchivePart).archiver.step()
    assert not node.part(ArchivePart).archiver.is_failing
    # The server with the duty reports it.
    assert await node.store.read(lambda: housekeeping.problem_of("archive")) is not None


async def test_disabled_archiving_reports_no_failure(node: ServerNode, clock: VirtualClock, monkeypatch):
    await failing(node, clock, monkeypatch)
    await archive_all(node, False)

    await node.part(ArchivePart).archiver.step()
    assert not node.part(ArchivePart).archiver.is_failing
    assert await node.store.read(lambda: housekeeping.problem_of("archive")) is None


async def test_a_file_deleted_during_a_read_is_no_error(node: ServerNode, clock: VirtualClock, tmp_path, monkeypatch):
    await node.definitions.jobs.create(1, {"name": "report", "command": "true"})
    await archive_all(node)
    (old,) = await ended(node, "ada")
    clock.advance(11 * DAY)
    write = node.part(ArchivePart).archiver._place.write

    async def late(location, pieces):
        await node.store.write(lambda: expiry.forget([parcel_of(UUID(old))]))
        await write(location, pieces)

    monkeypatch.setattr(node.part(ArchivePart).archiver._place, "write", late, raising=False)
    await round_of(node)
    assert not node.part(ArchivePart).archiver.is_failing
    assert await node.store.read(lambda: housekeeping.problem_of("archive")) is None
    assert files(tmp_path) == []
