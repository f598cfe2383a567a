"""Scenes of circuits: behind an open circuit nothing starts; counts of all servers lead to one decision."""

from typing import Any
from uuid import UUID

from msgspec import structs

from horae.model.admission.circuit import Circuit, CircuitChange, ParcelAttempts
from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.executions.submission import Submission
from horae.store.admission import circuit_gates, circuit_reads, circuits
from horae.store.script import Fetch, Script, Statement
from tests.races.scenes import MINUTE, Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World

CIRCUIT = Circuit(failures=50, minimum=4, open_for=MINUTE)
RUNNING = Statement("test_running", "SELECT coalesce(sum(hi - lo), 0) FROM running")


async def marked(world: World, n: int) -> tuple[Cast, UUID]:
    """Create queued executions of a job with a circuit."""
    c = await cast(world, circuit=CIRCUIT)
    keys = encode_keys(EnvelopeKeys(circuit=""))
    wanted = [structs.replace(one, envelope=structs.replace(one.envelope, keys=keys)) for one in world.wanted(c.job, n)]
    done = await world.store.submit([Submission(executions=wanted)])
    return c, done.parcels[0].id


def running() -> Script[int]:
    rows = yield Fetch(RUNNING)
    return int(rows[0][0])


def opened(c: Cast) -> list[Move]:
    """Open the job's circuit, and read the running executions after the acknowledgement."""
    which = c.job.id, ""
    force = Move("force", lambda: circuits.force(which, CircuitChange("open", "down"), "key:1", c.now))
    return [force, Move("look", running)]


async def begun_is_known(world: World, left: list[Any], right: list[Any]) -> None:
    assert await world.store.read(running) == left[-1], "an execution was started behind an open circuit"


@scene("a circuit is opened / claim")
async def _(world: World) -> Scene:
    c, _ = await marked(world, 2)
    w = await world.worker()
    return Scene(left=opened(c), right=[c.claim(w, 2)], check=begun_is_known)


@scene("a circuit is opened / claim for parked exchanges")
async def _(world: World) -> Scene:
    c, _ = await marked(world, 2)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=opened(c), right=[c.serve((a, 1), (b, 1))], check=begun_is_known)


@scene("two servers count failures of one circuit")
async def _(world: World) -> Scene:
    c, parcel = await marked(world, 1)

    def feed(server: int) -> Move:
        told = [ParcelAttempts(parcel, c.job.id, 0, 2)]
        return Move("feed", lambda: circuits.count_attempts(UUID(int=server), told, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert [s.state for s in (*left[0], *right[0])] == ["open"], "four failures open the circuit, once"

    return Scene(left=[feed(1)], right=[feed(2)], check=check)


@scene("two servers release probes")
async def _(world: World) -> Scene:
    c, _ = await marked(world, 3)
    which = c.job.id, ""
    w = await world.worker()
    past = c.now - 1
    await world.store.write(lambda: circuits.force(which, CircuitChange("open", "down", past), "key:1", past))
    assert await w.claim(3) == []
    await world.store.write(lambda: circuits.advance(c.now))
    go = Move("let_go", lambda: circuit_gates.release_waiting(which, 10, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted((left[0], right[0])) == [0, 1], "one probe runs"
        standing = await world.store.read(lambda: circuit_reads.status_of(which))
        assert len(standing.probes) == 1

    return Scene(left=[go], right=[go], check=check)


@scene("a circuit is reset / its waiting executions are released")
async def _(world: World) -> Scene:
    c, _ = await marked(world, 3)
    which = c.job.id, ""
    w = await world.worker()
    await world.store.write(lambda: circuits.force(which, CircuitChange("open", "down"), "key:1", c.now - 1))
    assert await w.claim(3) == []
    reset = Move("force", lambda: circuits.force(which, None, "key:1", c.now))
    go = Move("let_go", lambda: circuit_gates.release_waiting(which, 10, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left[-1] + right[0] == 3, "waiting executions are released, once"

    return Scene(left=[reset, go], right=[go], check=check)
