"""The audit reports broken invariants page by page; repair gives items without an owner a new one."""

import pytest

from horae.model.base.ids import parcel_id
from horae.store.executions.promote import LONG_AGO
from horae.store.executions.reads import audit
from tests.store_contract.auditing import audit_executions
from tests.store_contract.world import World, failed, rank, success

HOUR = 3_600_000_000


async def findings(world: World, patience=None):
    now = world.now()
    report = await world.store.read(lambda: audit_executions(now, patience))
    assert sum(report.kinds.values()) >= len(report.findings)
    return [(f.kind, f.shelf, f.lo, f.hi) for f in report.findings]


async def repair(world: World, patience=None):
    now = world.now()

    def script():
        report = yield from audit_executions(now, patience)
        return (yield from audit.repair(report.findings, now, world.rng, world.env.new_id))

    return await world.store.write(script)


async def some_of_everything(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 10)
    await world.parcel(job, 2, due_at=world.now() + HOUR)
    w = await world.worker()
    (slice,) = await w.claim(6)
    await w.report(success(slice, 0, 2), failed(slice, 2, 3))
    return job, parcel, w


async def test_a_sound_store_has_no_findings_and_is_counted(world: World):
    await some_of_everything(world)
    report = await world.store.read(lambda: audit_executions(world.now()))

    assert report.findings == []
    assert {shelf: (a.slices, a.items) for shelf, a in report.shelves.items()} == {
        "parcels": (2, 12), "waiting": (1, 2), "queued": (1, 4), "running": (1, 3), "history": (2, 3),
        "attempts": (1, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM running", ("missing", "parcels", 3, 6)),
        ("DELETE FROM history WHERE lo = 0", ("missing", "parcels", 0, 2)),
        ("UPDATE queued SET lo = 5", ("duplicate", "queued", 5, 10)),
        ("UPDATE queued SET lo = 4, hi = 10", ("duplicate", "queued", 4, 10)),
        ("UPDATE queued SET hi = 11", ("out-of-range", "queued", 6, 11)),
        ("UPDATE history SET hi = 3 WHERE lo = 0", ("duplicate", "history", 2, 3)),
        ("UPDATE running SET lo = 1, hi = 6", ("duplicate", "running", 1, 6)),
        ("UPDATE waiting SET wake_at = NULL", ("never-wakes", "waiting", 0, 2)),
        ("UPDATE queued SET lane = -1", ("no-lane", "queued", 6, 10)),
        ("DELETE FROM sessions", ("no-live-session", "running", 3, 6)),
        ("UPDATE attempts SET attempt = 2", ("attempt-mismatch", "attempts", 2, 3)),
    ],
)
async def test_each_kind_of_harm_is_found_and_named(world: World, sql, expected):
    await some_of_everything(world)
    await world.do(sql)

    assert expected in await findings(world)
    await world.wipe()


async def test_a_finding_about_one_item_names_one_item(world: World):
    await some_of_everything(world)
    await world.do("UPDATE history SET hi = 3 WHERE lo = 0")
    await world.do("UPDATE queued SET lo = 4, hi = 10")

    now = world.now()
    report = await world.store.read(lambda: audit_executions(now))
    assert {f.detail for f in report.findings} >= {"item 2 is on history too", "items 4 to 5 are on running too"}
    await world.wipe()


async def test_a_slice_without_its_parcel_is_found(world: World):
    _, parcel, _ = await some_of_everything(world)
    await world.do("DELETE FROM parcels WHERE id = $1", parcel)

    assert {(kind, shelf) for kind, shelf, *_ in await findings(world)} == {
        ("no-parcel", "queued"), ("no-parcel", "running"), ("no-parcel", "history"),
    }  # fmt: skip
    await world.wipe()


async def test_an_attempt_recorded_twice_is_found(world: World):
    job = await world.job()
    await world.parcel(job, 4)
    w = await world.worker()
    (slice,) = await w.claim(4)
    await w.report(failed(slice, 0, 2), failed(slice, 2, 4))
    await world.do("UPDATE attempts SET hi = 3 WHERE lo = 0")

    assert await findings(world) == [("attempt-mismatch", "attempts", 2, 4)]
    await world.wipe()


async def test_forgotten_slices_are_found_after_a_while(world: World):
    job = await world.job()
    await world.parcel(job, due_at=world.now() + 10)
    await world.parcel(job, 2)
    w, gone = await world.worker("w"), await world.worker("gone")
    await w.claim(1)
    await gone.claim(1)
    await gone.lose()
    world.clock.advance(audit.PATIENCE)
    assert await findings(world, audit.PATIENCE) == []
    world.clock.advance(11)

    assert sorted(await findings(world, audit.PATIENCE)) == [
        ("no-live-session", "running", 1, 2), ("overdue", "running", 0, 1), ("overdue", "waiting", 0, 1),
    ]  # fmt: skip
    assert await findings(world) == []


async def test_pages_add_up(world: World):
    job = await world.job()
    for n in range(7):
        await world.parcel(job, n + 1)
    await world.do("UPDATE queued SET lo = 1 WHERE hi = 4")
    whole = await world.store.read(lambda: audit_executions(world.now()))

    pages, after, report = 0, audit.FIRST, audit.AuditReport()
    while after is not None:
        page, after = await world.store.read(lambda after=after: audit.audit_page(after, world.now(), None, 2))
        report.add(page)
        pages += 1
    assert pages == 4
    assert report == whole
    assert [f.kind for f in report.findings] == ["missing"]
    await world.wipe()


async def test_only_the_first_findings_are_named_but_all_are_counted(world: World, monkeypatch):
    monkeypatch.setattr(audit, "MOST", 3)
    job = await world.job()
    for _ in range(5):
        await world.parcel(job)
    await world.do("DELETE FROM queued")
    report = await world.store.read(lambda: audit_executions(world.now()))

    assert (len(report.findings), dict(report.kinds)) == (3, {"missing": 5})
    await world.wipe()


async def test_repair_queues_missing_items_with_a_new_attempt(world: World):
    _, parcel, w = await some_of_everything(world)
    await world.do("DELETE FROM running")
    done = await repair(world)
    await world.store.promote_due(LONG_AGO, 10, rank)

    assert (done.requeued, done.ended) == (3, 0)
    assert await world.states(parcel) == ["success"] * 2 + ["failed"] + ["queued"] * 7
    granted = [s for _ in range(3) for s in await w.claim(9)]
    assert min(s.attempt for s in granted if 3 <= s.lo < 6) > 1


async def test_repair_ends_missing_at_most_once_items(world: World):
    parcel = await world.parcel(await world.job(delivery="at-most-once"), 3)
    await world.do("UPDATE queued SET lo = 1")
    done = await repair(world)

    assert (done.requeued, done.ended) == (0, 1)
    assert await world.states(parcel) == ["failed", "queued", "queued"]


async def test_repair_takes_back_slices_without_a_session(world: World):
    _, parcel, _ = await some_of_everything(world)
    await world.do("DELETE FROM sessions")
    done = await repair(world)

    assert done.requeued == 3
    assert await world.states(parcel) == ["success"] * 2 + ["failed"] + ["queued"] * 7


async def test_repair_wakes_slices_that_wait_for_nothing(world: World):
    await some_of_everything(world)
    await world.do("UPDATE waiting SET wake_at = NULL")
    assert (await repair(world)).requeued == 2
    await world.store.promote_due(LONG_AGO, 10, rank)

    assert await world.on("waiting") == []


async def test_repair_twice_is_repair_once(world: World):
    _, parcel, _ = await some_of_everything(world)
    now = world.now()
    await world.do("DELETE FROM running")
    report = await world.store.read(lambda: audit_executions(now))
    first = await world.store.write(lambda: audit.repair(report.findings, now, world.rng, world.env.new_id))
    again = await world.store.write(lambda: audit.repair(report.findings, now, world.rng, world.env.new_id))

    assert (first.requeued, again.requeued) == (3, 0)
    assert len(await world.states(parcel)) == 10


async def test_repair_leaves_unclear_findings_alone(world: World):
    await some_of_everything(world)
    await world.do("UPDATE queued SET lo = 5")
    done = await repair(world)

    assert (done.requeued, done.ended) == (0, 0)
    assert await findings(world) == [("duplicate", "queued", 5, 10)]
    await world.wipe()


def test_the_page_bounds_hold_every_parcel():
    from horae.env import virtual_env

    assert audit.FIRST < parcel_id(virtual_env().new_id()) < audit.LAST
