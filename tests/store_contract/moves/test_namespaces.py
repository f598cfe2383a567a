"""Namespaces: created with their default queue, deleted when they have no live contents, and never confused."""

from horae.model.admission.policy import FifoPolicy
from horae.model.tenancy.namespace import NamespaceDefinition as Said
from horae.model.tenancy.namespace import parse_namespace
from horae.store.admission import lanes
from horae.store.schema import all_tables as schema
from horae.store.tenancy import namespaces
from tests.store_contract.world import NAMESPACE, World

DAY = 86_400_000_000


async def create(world: World, name: str, said: Said | None = None) -> int | None:
    return await world.store.write(lambda: namespaces.create(name, said or Said(), world.now()))


async def test_a_namespace_is_created_with_its_default_queue(world: World):
    said = parse_namespace({"weight": 2, "queuePolicy": "fifo", "retention": {"success": "2d"}})
    id = await create(world, "billing", said)
    assert await create(world, "billing") is None
    found = await world.store.read(lambda: namespaces.by_name("billing"))
    assert (found.id, found.weight, found.policy, found.spec) == (id, 2.0, FifoPolicy(), said.spec)
    directory = await world.store.directory()
    assert [(queue.name, queue.policy.kind) for queue in directory.queues if queue.namespace == id] == [
        ("default", "fifo")
    ]
    assert [one.name for one in directory.namespaces] == ["default", "billing"]
    queue, _ = await world.store.ensure_lane(id, "other", ())
    assert queue.policy.kind == "fifo"
    assert await world.store.read(namespaces.retentions) == {id: {"success": 2 * DAY}}


async def test_equal_names_in_two_namespaces_are_two_queues(world: World):
    id = await create(world, "billing")
    mine, my_lane = await world.store.ensure_lane(NAMESPACE, "default", ("kind:command",))
    theirs, their_lane = await world.store.ensure_lane(id, "default", ("kind:command",))
    assert mine.id != theirs.id
    assert my_lane.id != their_lane.id


async def test_a_change_changes_the_revisions(world: World):
    await create(world, "billing")
    before = await world.store.read(lanes.revisions)
    world.clock.advance(1)
    was = await world.store.change(lambda now: namespaces.change("billing", lambda _: Said(weight=5), now))
    assert was.weight == 1
    assert await world.store.read(lanes.revisions) != before
    assert (await world.store.read(lambda: namespaces.by_name("billing"))).weight == 5
    assert await world.store.change(lambda now: namespaces.change("nobody", lambda _: Said(), now)) is None


async def test_a_namespace_with_live_contents_is_not_deleted(world: World):
    job = await world.job()
    await world.submit(job)
    await world.worker()
    alive = await world.store.change(lambda now: namespaces.delete(NAMESPACE, now))
    assert (alive.jobs, alive.executions, alive.workers) == (1, 1, 1)
    assert await world.store.read(lambda: namespaces.is_open(NAMESPACE))


async def test_a_deleted_namespace_frees_its_name_and_keeps_its_id(world: World):
    first = await create(world, "billing")
    await world.store.ensure_lane(first, "default", ())
    assert await world.store.change(lambda now: namespaces.delete(first, now)) is None
    assert await world.store.read(lambda: namespaces.by_name("billing")) is None
    assert not await world.store.read(lambda: namespaces.is_open(first))
    second = await create(world, "billing")
    assert second != first
    directory = await world.store.directory()
    assert {queue.namespace for queue in directory.queues} == {NAMESPACE, second}
    assert first not in {lane.namespace for lane in directory.lanes}


async def test_no_credential_opens_a_deleted_namespace(world: World):
    id = await create(world, "billing")
    key = "INSERT INTO keys (id, hash, name, namespace, role, created_at, permissions, queues, jobs)"
    await world.do(f"{key} VALUES ('k', '', '', {id}, 'admin', 0, '[]', '[]', '[]')")
    code = "INSERT INTO sign_in_codes (hash, namespace, role, until, permissions, queues, jobs)"
    await world.do(f"{code} VALUES ('c', {id}, 'admin', 1, '[]', '[]', '[]')")
    assert await world.store.change(lambda now: namespaces.delete(id, now)) is None
    assert await world.rows(f"SELECT count(*) FROM keys WHERE namespace = {id} AND revoked_at IS NULL") == [(0,)]
    for table in ("sign_in_codes", "enrolments", "members", "secrets", "hooks", "queues", "quotas"):
        assert await world.rows(f"SELECT count(*) FROM {table} WHERE namespace = {id}") == [(0,)], table
    for statement in namespaces.DROPS:
        assert statement.name.split("_of_")[0].removeprefix("drop_") in schema.metadata.tables
