"""Watching folders and buckets: each version of each object fires once, whatever happens to servers and scans."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore

from horae.engine.admission.quotas import Quotas
from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.settings import EngineSettings
from horae.engine.tenancy.fair_access import FairAccess
from horae.engine.topics import Topics
from horae.env import SECOND
from horae.errors import BadInput
from horae.features.events.engine.intake import EventIntake
from horae.features.events.engine.watching import bucket, folder
from horae.features.events.engine.watching.object_versions import ObjectVersion
from horae.features.events.engine.watching.watcher import FORGET_EVERY, Places, Scan, Watcher
from horae.features.events.store import event_reads, watches
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.decisions.rules import Rules
from tests.store_contract.world import NAMESPACE, World, add_trigger
from tests.waiting import eventually

ALLOW = Rules(overlap="allow")


class Bucket:
    """A bucket with objects of the test, listed in small pages as an object store does."""

    def __init__(self, monkeypatch, page: int = 2) -> None:
        self.objects: dict[str, dict] = {}
        self.page, self.listed, self.before_page = page, 0, None
        monkeypatch.setattr(obstore, "list", self._list)

    def put(self, path: str, at: int, etag: str = "e") -> None:
        modified = datetime.fromtimestamp(at / SECOND, UTC)
        self.objects[path] = {"path": path, "last_modified": modified, "size": 1, "e_tag": f'"{etag}"', "version": None}

    async def _list(self, store, prefix=None, chunk_size=50):
        self.listed += 1
        everything = [meta for path, meta in sorted(self.objects.items()) if path.startswith(prefix or "")]
        for at in range(0, len(everything), self.page):
            if self.before_page is not None:
                await self.before_page(at)
            yield everything[at : at + self.page]


def watcher(world: World, places: Places) -> Watcher:
    env, store = world.env, world.store
    hints = Hints(env, store, env.new_id())
    directory = LocalDirectory(env, store, hints)
    clock = SimpleNamespace(trusted=True)
    access = FairAccess(env, directory.weight, EngineSettings())
    topics = Topics(store)
    quotas = Quotas(env, store, directory, hints, env.new_id(), access, topics)
    check = EventIntake(env, store, directory, hints, quotas, topics).check
    return Watcher(env, store, directory, hints, clock, check, places, topics)


async def look(*watchers: Watcher) -> None:
    for one in watchers:
        await one.step()
    for one in watchers:
        await one.settle()


async def fired(world: World) -> list[str]:
    found = await world.store.read(lambda: event_reads.page(NAMESPACE, None, None, 1000))
    return sorted(event.key.partition("#")[0] for event in found)


@pytest.fixture
def objects(monkeypatch) -> Bucket:
    return Bucket(monkeypatch)


@pytest.fixture
def places() -> Places:
    return Places(["s3://bucket"], open_store=lambda url: None)


async def watch(world: World, place: WatchTrigger) -> None:
    await add_trigger(world, await world.job(), place, ALLOW, name="inbox", params={"key": "${event.payload.key}"})


async def test_each_object_version_fires_once(world: World, objects: Bucket, places: Places):
    await watch(world, WatchTrigger(url="s3://bucket/in/"))
    server = watcher(world, places)
    await look(server)
    objects.put("in/a", world.now())
    objects.put("in/b", world.now())
    objects.put("other/c", world.now())

    for _ in range(3):
        world.clock.advance(30 * SECOND)
        await look(server)
    assert await fired(world) == ["a", "b"]

    objects.put("in/a", world.now(), etag="e2")
    world.clock.advance(30 * SECOND)
    await look(server)
    assert await fired(world) == ["a", "a", "b"]
    items = [bytes(parcel.items.one(0)) for parcel in await world.store.parcels(await _parcels(world))]
    assert b'{"key":"in/a"}' in items


async def _parcels(world: World):
    return [row[0] for row in await world.rows("SELECT id FROM parcels ORDER BY id")]


async def test_the_first_scan_ignores_existing_objects_unless_configured(world: World, objects: Bucket, places: Places):
    objects.put("in/old", world.now() - 3600 * SECOND)
    await watch(world, WatchTrigger(url="s3://bucket/in/"))
    objects.put("in/new", world.now() + SECOND)
    await look(watcher(world, places))
    assert await fired(world) == ["new"]

    await watch_again(world, "s3://bucket/in/", existing="fire")
    await look(watcher(world, places))
    assert await fired(world) == ["new", "new", "old"]


async def test_existing_objects_that_were_not_settled_at_the_first_scan_are_ignored(
    world: World, objects: Bucket, places: Places
):
    objects.put("in/old", world.now() - 5 * SECOND)
    await watch(world, WatchTrigger(url="s3://bucket/in/", settle=20 * SECOND))
    objects.put("in/new", world.now() + SECOND)
    for _ in range(3):
        await look(watcher(world, places))
        world.clock.advance(30 * SECOND)
    assert await fired(world) == ["new"]


@pytest.mark.parametrize(("age", "settled"), [(2, True), (1, False), (-1, False), (-3600, True)])
def test_an_object_is_settled_after_a_while_also_by_a_clock_that_is_ahead(age: int, settled: bool):
    place, now = WatchTrigger(url="s3://bucket/in/", settle=2 * SECOND), 10_000 * SECOND
    version = ObjectVersion(key="a", version="1", size=1, modified=now - age * SECOND)
    assert version.is_settled(place, now) is settled


async def watch_again(world: World, url: str, **more) -> None:
    job = await world.job(f"job-{world.env.new_id()}")
    await add_trigger(world, job, WatchTrigger(url=url, **more), ALLOW, name="inbox")


async def test_an_object_found_after_the_first_scan_fires_however_old_it_is(
    world: World, objects: Bucket, places: Places
):
    await watch(world, WatchTrigger(url="s3://bucket/in/"))
    server = watcher(world, places)
    await look(server)
    objects.put("in/moved-here", world.now() - 3600 * SECOND)
    world.clock.advance(30 * SECOND)
    await look(server)

    assert await fired(world) == ["moved-here"]


async def test_two_servers_fire_each_object_once(world: World, objects: Bucket, places: Places):
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    servers = [watcher(world, places) for _ in range(3)]
    for n in range(10):
        objects.put(f"in/{n}", world.now())

    for _ in range(3):
        await look(*servers)
        world.clock.advance(30 * SECOND)

    assert await fired(world) == [str(n) for n in range(10)]
    assert objects.listed == 3


async def test_a_server_that_stops_in_the_middle_leaves_the_rest_to_another(
    world: World, objects: Bucket, places: Places
):
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    for n in range(6):
        objects.put(f"in/{n}", world.now())
    first, second = watcher(world, places), watcher(world, places)

    async def stop(at: int) -> None:
        if at == 4:
            objects.before_page = None
            raise ConnectionResetError("gone")

    objects.before_page = stop
    await look(first)
    assert await fired(world) == ["0", "1", "2", "3"]
    assert await world.store.read(watches.troubled) == 1

    world.clock.advance(60 * SECOND)
    await look(second)
    assert await fired(world) == [str(n) for n in range(6)]
    assert await world.store.read(watches.troubled) == 0


async def test_a_scan_on_a_frozen_server_is_overtaken_and_doubles_nothing(
    world: World, objects: Bucket, places: Places, monkeypatch
):
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    for n in range(6):
        objects.put(f"in/{n}", world.now())
    slow, quick = watcher(world, places), watcher(world, places)
    monkeypatch.setattr(Scan, "_renew", lambda scan: asyncio.sleep(0))

    async def frozen(at: int) -> None:
        if at == 2:
            objects.before_page = None
            world.clock.advance(watches.LEASE + SECOND)
            await look(quick)

    objects.before_page = frozen
    await look(slow)

    assert await fired(world) == [str(n) for n in range(6)]
    assert objects.listed == 2


async def test_a_slow_page_does_not_lose_the_lease(world: World, objects: Bucket, places: Places):
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    for n in range(3):
        objects.put(f"in/{n}", world.now())

    async def slow(at: int) -> None:
        for _ in range(4):
            before = await world.rows("SELECT next_poll_at FROM watches")
            await eventually(world.clock.next_wake)
            world.clock.advance(watches.LEASE // 2)
            await eventually(lambda before=before: _differs(world, before))
            await watcher(world, places).step()

    objects.before_page = slow
    await look(watcher(world, places))

    assert (objects.listed, await fired(world)) == (1, ["0", "1", "2"])


async def _differs(world: World, before: list) -> bool:
    return await world.rows("SELECT next_poll_at FROM watches") != before


async def test_deleted_objects_are_forgotten_once_a_day(world: World, objects: Bucket, places: Places):
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    server = watcher(world, places)
    for name in "abc":
        objects.put(f"in/{name}", world.now())
    await look(server)
    del objects.objects["in/b"]
    world.clock.advance(FORGET_EVERY)

    await look(server)

    assert len(await world.rows("SELECT object FROM watched")) == 2
    assert await fired(world) == ["a", "b", "c"]


async def test_a_large_place_is_scanned_in_parts(world: World, objects: Bucket, places: Places):
    objects.page = 1000
    await watch(world, WatchTrigger(url="s3://bucket/in/", existing="fire"))
    for n in range(2500):
        objects.put(f"in/{n:04}", world.now())

    await look(watcher(world, places))

    rows = await world.rows("SELECT sum(n), max(n) FROM parcels")
    assert int(rows[0][0]) == 2500
    assert rows[0][1] <= 500
    (state,) = await world.rows("SELECT objects, ready FROM watches")
    assert (state[0], bool(state[1])) == (2500, True)


async def test_a_place_that_cannot_be_scanned_reports_why_and_is_tried_again(
    world: World, objects: Bucket, places: Places
):
    await watch(world, WatchTrigger(url="s3://bucket/in/", interval=SECOND))
    await watch_again(world, "s3://other/in/")

    async def refuse(at: int) -> None:
        raise PermissionError("403 Forbidden\nlots of detail")

    objects.before_page = refuse
    objects.put("in/a", world.now() + SECOND)
    await look(watcher(world, places))

    troubles = sorted(row[0] for row in await world.rows("SELECT trouble FROM watches"))
    assert troubles[0] == "PermissionError: 403 Forbidden"
    assert "may not watch s3://other/in/" in troubles[1]
    objects.before_page = None
    world.clock.advance(60 * SECOND)
    await look(watcher(world, places))
    assert await fired(world) == ["a"]


@pytest.mark.parametrize("table", ["jobs", "triggers"])
async def test_a_paused_watch_does_not_count_as_failing(world: World, objects: Bucket, places: Places, table: str):
    await watch(world, WatchTrigger(url="s3://other/in/"))
    await look(watcher(world, places))
    assert await world.store.read(watches.troubled) == 1

    await world.do(f"UPDATE {table} SET state = 'paused'")

    assert await world.store.read(watches.troubled) == 0


async def test_an_object_store_without_its_package_is_refused_with_the_package_to_install(world: World, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    await watch(world, WatchTrigger(url="s3://bucket/in/"))
    await look(watcher(world, Places(["s3://bucket"])))

    ((trouble,),) = await world.rows("SELECT trouble FROM watches")
    assert "pip install 'horae[s3]'" in trouble


async def test_a_paused_watch_is_not_scanned(world: World, objects: Bucket, places: Places):
    await watch(world, WatchTrigger(url="s3://bucket/in/"))
    await world.do("UPDATE jobs SET state = 'paused'")
    await look(watcher(world, places))

    assert objects.listed == 0


# Folders


def put(path: Path, world: World, age: int = 10, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    at = (world.now() - age * SECOND) * 1000
    os.utime(path, ns=(at, at))


async def test_a_folder_is_watched_with_its_subfolders(world: World, tmp_path: Path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    await watch(world, WatchTrigger(url=f"file://{inbox}", settle=2 * SECOND))
    server = watcher(world, Places([f"file://{tmp_path}"]))
    await look(server)
    put(inbox / "a.csv", world)
    put(inbox / "deep" / "b.csv", world)
    put(tmp_path / "outside.csv", world)
    (inbox / "link.csv").symlink_to(tmp_path / "outside.csv")
    (inbox / "loop").symlink_to(inbox)

    for _ in range(2):
        world.clock.advance(30 * SECOND)
        await look(server)
    assert await fired(world) == ["a.csv", "deep/b.csv"]

    put(inbox / "a.csv", world, text="longer")
    world.clock.advance(30 * SECOND)
    await look(server)
    assert await fired(world) == ["a.csv", "a.csv", "deep/b.csv"]
    (event, *_) = await world.store.read(lambda: event_reads.page(NAMESPACE, None, None, 1))
    assert str(inbox / "a.csv").encode() in event.payload


async def test_a_file_that_is_still_written_waits_until_it_is_whole(world: World, tmp_path: Path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    await watch(world, WatchTrigger(url=f"file://{inbox}", settle=5 * SECOND))
    server = watcher(world, Places([f"file://{tmp_path}"]))
    await look(server)
    world.clock.advance(30 * SECOND)
    put(inbox / "a", world, age=1)
    await look(server)
    assert await fired(world) == []

    world.clock.advance(30 * SECOND)
    await look(server)
    assert await fired(world) == ["a"]


async def test_a_missing_folder_is_reported(world: World, tmp_path: Path):
    await watch(world, WatchTrigger(url=f"file://{tmp_path}/nope"))
    await look(watcher(world, Places([f"file://{tmp_path}"])))

    ((trouble,),) = await world.rows("SELECT trouble FROM watches")
    assert "No such file" in trouble


async def test_an_unreadable_subfolder_is_reported_and_the_others_are_watched(
    world: World, tmp_path: Path, monkeypatch
):
    inbox, scandir = tmp_path / "inbox", os.scandir
    put(inbox / "a", world)
    put(inbox / "deep" / "b", world)
    await watch(world, WatchTrigger(url=f"file://{inbox}", existing="fire"))
    server = watcher(world, Places([f"file://{tmp_path}"]))
    await look(server)
    assert await fired(world) == ["a", "deep/b"]

    def refuse(folder: bytes):
        if folder.endswith(b"/deep"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    put(inbox / "c", world)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        world.clock.advance(FORGET_EVERY)
        await look(server)
    assert await fired(world) == ["a", "c", "deep/b"]
    ((trouble,),) = await world.rows("SELECT trouble FROM watches")
    assert trouble == f"{inbox}/deep: Permission denied."
    assert str(inbox) in (await world.rows("SELECT trouble FROM timers"))[0][0]

    world.clock.advance(60 * SECOND)
    await look(server)
    assert await fired(world) == ["a", "c", "deep/b"]
    assert await world.rows("SELECT w.trouble, t.trouble FROM watches w, timers t") == [(None, None)]


async def test_a_link_does_not_lead_out_of_the_allowed_folders(tmp_path: Path):
    (tmp_path / "inbox").symlink_to("/etc")

    with pytest.raises(BadInput, match="outside"):
        await anext(folder.pages(str(tmp_path / "inbox"), [str(tmp_path)]))


async def test_file_names_that_are_not_text_are_distinguished(tmp_path: Path):
    for name in (b"a\xff", b"a\xfe"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("x")

    (page,) = [page async for page in folder.pages(str(tmp_path), [str(tmp_path)])]

    assert [listed.key for listed in page] == ["a\ufffd", "a\ufffd"]
    assert len({ObjectVersion(key="", raw=one.raw, version="1", size=0, modified=0).digest for one in page}) == 2


def test_no_place_may_be_watched_unless_an_administrator_allows_it():
    with pytest.raises(BadInput, match="may not watch file:///srv") as refused:
        Places().check(WatchTrigger(url="file:///srv"))

    assert "HORAE_WATCH_ROOTS" in refused.value.remedy


# Answers of obstore


@pytest.mark.parametrize("kind", ["memory", "local"])
async def test_stores_are_listed_page_by_page_below_a_prefix(tmp_path: Path, kind: str):
    store = MemoryStore() if kind == "memory" else LocalStore(str(tmp_path))
    for n in range(1500):
        await obstore.put_async(store, f"in/{n:04}", b"x")
    await obstore.put_async(store, "inner/z", b"x")
    place = WatchTrigger(url="s3://bucket/in")

    pages = [page async for page in bucket.pages(place, open_store=lambda url: store)]

    everything = [one for page in pages for one in page]
    assert sorted(one.key for one in everything) == [f"{n:04}" for n in range(1500)]
    assert max(map(len, pages)) <= bucket.PAGE
    assert len({one.digest for one in everything}) == 1500
    before = next(one for one in everything if one.key == "0007")
    await obstore.put_async(store, "in/0007", b"other")
    found = [one async for page in bucket.pages(place, open_store=lambda url: store) for one in page]
    after = [one for one in found if one.key == "0007"]
    assert before.digest != after[0].digest
