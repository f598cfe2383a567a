"""Jobs: every edit creates a version, dependencies have no circles, a deleted job frees its name."""

import asyncio
from uuid import UUID

import msgspec
import pytest

from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask
from horae.store.definitions import jobs
from horae.store.executions.leaving import cancel_job
from tests.store_contract.world import NAMESPACE, World


class Rejected(Exception):
    pass


async def edit(world: World, job, version, **changes):
    spec = msgspec.structs.replace(job.spec, **changes)
    now = world.now()

    def script():
        yield from jobs.lock(job.id, NAMESPACE)
        verdict = yield from jobs.edit(job.id, NAMESPACE, version, spec, job.queue, job.lane, now)
        verdict = verdict or (yield from jobs.set_dependencies(job.id, spec))
        if verdict is not None:
            raise Rejected(verdict)

    try:
        await world.store.write(script)
    except Rejected as rejected:
        return rejected.args[0]


async def set_state(world: World, job, state):
    now = world.now()

    def script():
        yield from jobs.lock(job.id, NAMESPACE)
        if state == "deleted":
            yield from jobs.delete(job.id, None, now)
        else:
            yield from jobs.set_state(job.id, state, now)

    await world.store.write(script)


async def test_a_job_is_found_by_id_and_name(world: World):
    job = await world.job("report", priority=7)

    stored = await world.store.job(job.id, NAMESPACE)
    assert (stored.job.name, stored.job.version, stored.job.state) == ("report", 1, "active")
    assert (stored.job.spec, stored.queue, stored.lane) == (job.spec, job.queue, job.lane)
    assert await world.store.job_named(NAMESPACE, "report") == stored
    assert await world.store.job(job.id, 2) is None
    assert await world.store.job_named(2, "report") is None
    assert await world.store.job_named(NAMESPACE, "Report") is None


async def test_every_edit_is_a_version(world: World):
    job = await world.job("a")
    world.clock.advance(5)
    assert await edit(world, job, 2, description="two") is None
    assert await edit(world, job, 3, description="three", name="b") is None

    versions = await world.store.versions(job.id)
    assert [(v.version, v.spec.description) for v in versions] == [(3, "three"), (2, "two"), (1, "")]
    stored = await world.store.job_named(NAMESPACE, "b")
    assert (stored.job.id, stored.job.version, stored.job.updated_at) == (job.id, 3, world.now())
    assert await world.store.job_named(NAMESPACE, "a") is None


async def test_definitions_come_by_job_and_version(world: World):
    job = await world.job("a")
    await edit(world, job, 2, description="two")
    found = await world.store.definitions([(job.id, 1), (job.id, 2), (job.id, 9)])

    assert {key: msgspec.json.decode(text, type=Spec).description for key, text in found.items()} == {
        (job.id, 1): "", (job.id, 2): "two",
    }  # fmt: skip


async def test_a_name_is_taken_once(world: World):
    job, other = await world.job("a"), await world.job("b")
    spec = Spec(name="a", task=CommandTask(argv=("true",)))
    taken = await world.store.write(lambda: jobs.add(world.env.new_id(), NAMESPACE, spec, 1, 1, world.now()))

    assert taken == jobs.NameTaken(job.id)
    assert await edit(world, other, 2, name="a") == jobs.NameTaken(job.id)
    assert await world.store.read(lambda: jobs.name_taken(NAMESPACE, "a", other.id)) == job.id
    assert await world.store.read(lambda: jobs.name_taken(NAMESPACE, "a", job.id)) is None
    assert len(await world.store.versions(other.id)) == 1


async def test_one_of_many_concurrent_creations_gets_the_name(world: World):
    spec = Spec(name="a", task=CommandTask(argv=("true",)))
    ids = [world.env.new_id() for _ in range(5)]
    answers = await asyncio.gather(
        *(world.store.write(lambda id=id: jobs.add(id, NAMESPACE, spec, 1, 1, world.now())) for id in ids)
    )

    winner = (await world.store.job_named(NAMESPACE, "a")).job.id
    assert answers.count(None) == 1
    assert {answer.id for answer in answers if answer} == {winner}


async def test_a_deleted_job_frees_its_name_and_stays_readable(world: World):
    job = await world.job("a")
    await set_state(world, job, "deleted")
    again = await world.job("a")

    assert (await world.store.job(job.id, NAMESPACE)).job.state == "deleted"
    assert (await world.store.job_named(NAMESPACE, "a")).job.id == again.id
    assert await world.store.read(lambda: jobs.name_taken(NAMESPACE, "a", job.id)) == again.id


async def test_a_restored_job_is_in_the_state_it_was_deleted_from(world: World):
    for state in ("active", "paused"):
        job = await world.job(state)
        await set_state(world, job, state)
        await world.store.write(lambda job=job: jobs.delete(job.id, "pending", world.now()))
        assert await world.store.read(cancel_job.unfinished) == [job.id]

        assert await world.store.write(lambda job=job: jobs.restore(job.id, world.now())) == state

        assert (await world.store.job(job.id, NAMESPACE)).job.state == state
        assert await world.store.read(cancel_job.unfinished) == []


async def test_paused_jobs_are_listed(world: World):
    a, b = await world.job("a"), await world.job("b")
    await set_state(world, a, "paused")
    assert await world.store.paused_jobs() == {a.id}
    await set_state(world, a, "active")
    await set_state(world, b, "deleted")
    assert await world.store.paused_jobs() == frozenset()


async def chain(world: World, names: str):
    """Create jobs that each depend on the one before."""
    made = []
    for name in names:
        made.append(await world.job(name, dependencies=(str(made[-1].id),) if made else ()))
    return made


@pytest.mark.parametrize("upstream", [1, 2, 3])
async def test_dependencies_may_not_be_circular(world: World, upstream):
    made = await chain(world, "abcd")
    verdict = await edit(world, made[0], 2, dependencies=(str(made[upstream].id),))

    assert isinstance(verdict, jobs.Cycle)
    assert verdict.path[0] == verdict.path[-1] == made[0].id
    assert verdict.path[1:-1] == [made[n].id for n in range(upstream, 0, -1)]
    assert (await world.store.job(made[0].id, NAMESPACE)).job.version == 1
    assert len(await world.rows("SELECT job FROM dependencies")) == 3


async def test_a_job_may_not_depend_on_itself(world: World):
    job = await world.job("a")

    assert await edit(world, job, 2, dependencies=(str(job.id),)) == jobs.Cycle([job.id, job.id])


async def test_a_diamond_is_no_circle(world: World):
    a, b, c = await chain(world, "abc")
    d = await world.job("d", dependencies=(str(a.id),))

    assert await edit(world, c, 2, dependencies=(str(b.id), str(d.id))) is None
    rows = await world.rows("SELECT upstream FROM dependencies WHERE job = $1", c.id)
    assert {row[0] for row in rows} == {b.id, d.id}


async def test_an_edit_replaces_the_dependencies(world: World):
    a, b = await chain(world, "ab")

    assert await edit(world, b, 2, dependencies=()) is None
    assert await edit(world, a, 2, dependencies=(str(b.id),)) is None


def test_a_circle_is_found_in_any_graph():
    a, b, c, d = (UUID(int=n) for n in range(4))

    assert jobs.path_back(a, {}) == []
    assert jobs.path_back(a, {a: [b], b: [c, d], d: [c]}) == []
    assert jobs.path_back(a, {a: [b], b: [c, b], c: [b, a]}) == [a, b, c, a]


async def test_a_lane_is_created_once(world: World):
    made = await asyncio.gather(*(world.store.ensure_lane(NAMESPACE, "mail", ("gpu", "a")) for _ in range(5)))
    again = await world.store.ensure_lane(NAMESPACE, "mail", ("a", "gpu"))
    other = await world.store.ensure_lane(NAMESPACE, "mail", ("a",))

    assert len({(queue.id, lane.id) for queue, lane in [*made, again]}) == 1
    assert other[0].id == again[0].id
    assert other[1].id != again[1].id
    assert again[1].needs == {"a", "gpu"}
    directory = await world.store.directory()
    assert {lane.id for lane in directory.lanes} == {again[1].id, other[1].id}
    assert again[0] in directory.queues


async def test_a_change_is_made_of_moves_at_one_instant_or_not_at_all(world: World):
    job = await world.job("a")
    world.clock.advance(7)

    def pause_both(now):
        yield from jobs.set_state(job.id, "paused", now)
        if now != world.now():
            raise Rejected
        return now

    def fail(now):
        yield from jobs.delete(job.id, None, now)
        raise Rejected

    assert await world.store.change(pause_both) == world.now()
    with pytest.raises(Rejected):
        await world.store.change(fail)
    stored = await world.store.job(job.id, NAMESPACE)
    assert (stored.job.state, stored.job.updated_at) == ("paused", world.now())
