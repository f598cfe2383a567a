"""Scenes of signals: in any order, none is lost, and each is delivered once."""

from typing import Any
from uuid import UUID

from horae.model.executions.signal_waits import Signal
from horae.model.fleet.protocol import Await, Outcome
from horae.store.executions.durable import signals
from tests.races.scenes import Cast, cast, holding, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import Worker, World

GO, DEADLINE = "@wait:go", 2  # microseconds after the scene is set, which is in the past when the moves are made
TRIES = 5


def send(c: Cast, parcel: UUID, id: int = 1) -> Move:
    """Return one try; a server retries while the execution is moving."""
    signal = Signal(id=UUID(int=id), name="go", payload=str(id).encode())
    return Move("send", lambda: signals.send(parcel, 0, signal, c.now))


def wait(c: Cast, w: Worker, parcel: UUID, attempt: int = 1, step: str = GO) -> Move:
    body = Await(parcel=parcel, item=0, attempt=attempt, step=step, signal="go")
    return Move("wait", lambda: signals.wait(w.session, body, c.now))


def suspended(parcel: UUID, attempt: int = 1, *, wake_at: int | None = None) -> Outcome:
    return Outcome(parcel=parcel, lo=0, hi=1, attempt=attempt, outcome="suspended", wake_at=wake_at, waits=[GO])


def arrives(c: Cast, parcel: UUID) -> Any:
    """Check that the signal is stored once and that no execution sleeps over it, after the server's further tries."""

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        verdict = left[0].verdict
        for _ in range(TRIES):
            if verdict != "moving":
                break
            verdict = (await world.store.write(send(c, parcel).make)).verdict
        ended = bool(await world.history(parcel))
        assert verdict in ("delivered", "kept") or (verdict == "final" and ended), verdict
        taken = await world.rows("SELECT taken_by FROM signals")
        results = await world.rows("SELECT name FROM steps WHERE name <> '@began'")
        assert len(taken) == (verdict != "final"), "a signal is not stored once"
        assert [row[0] for row in taken if row[0]] == [row[0] for row in results], "a signal and its step disagree"
        open = await world.rows("SELECT step FROM awaits")
        assert not (open and any(row[0] is None for row in taken)), "a signal is not delivered to the waiting execution"
        for slice in await world.on("waiting", parcel):
            sleeps = slice.reason == "signal" and slice.wake_at is None
            assert not (sleeps and not open), "an execution sleeps over its signal"

    return check


async def asleep(c: Cast, wake_at: int | None = None) -> tuple[UUID, Worker]:
    """Create an execution that waits for its signal without a worker."""
    parcel, w, _ = await holding(c, 1)
    await c.world.store.write(wait(c, w, parcel).make)
    await w.report(suspended(parcel, wake_at=wake_at))
    return parcel, w


@scene("signal / report of the waiting execution")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 1)
    await world.store.write(wait(c, w, parcel).make)
    report = c.report(w, suspended(parcel))
    return Scene(left=[send(c, parcel)], right=[report], check=arrives(c, parcel))


@scene("signal / wait, and report")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 1)
    return Scene(
        left=[send(c, parcel)], right=[wait(c, w, parcel), c.report(w, suspended(parcel))], check=arrives(c, parcel)
    )


@scene("signal / claim, wait, and report")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job)
    w = await world.worker()
    moves = [c.claim(w, n=1), wait(c, w, parcel), c.report(w, suspended(parcel), n=2)]
    return Scene(left=[send(c, parcel)], right=moves, check=arrives(c, parcel))


@scene("signal / promote, claim, wait, and report")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w = await asleep(c, world.now() + DEADLINE)
    n = w.numbers[0]
    moves = [
        c.promote(), c.claim(w, n=n + 1), wait(c, w, parcel, 2), c.report(w, suspended(parcel, 2), n=n + 2)
    ]  # fmt: skip
    return Scene(left=[send(c, parcel)], right=moves, check=arrives(c, parcel))


@scene("signal / cancel of the waiting execution")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, _ = await asleep(c)
    return Scene(left=[send(c, parcel)], right=[c.cancel(parcel, 0)], check=arrives(c, parcel), patient="")


@scene("signal / rescue of the waiting execution")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 1)
    await world.store.write(wait(c, w, parcel).make)
    return Scene(left=[send(c, parcel)], right=c.lose(w), check=arrives(c, parcel))


@scene("signal / signal, one wait")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, _ = await asleep(c)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        verdicts = [left[0].verdict, right[0].verdict]
        for at, id in ((0, 1), (1, 2)):
            for _ in range(TRIES):
                if verdicts[at] == "moving":
                    verdicts[at] = (await world.store.write(send(c, parcel, id).make)).verdict
        assert sorted(verdicts) == ["delivered", "kept"], verdicts
        assert len(await world.rows("SELECT name FROM steps WHERE name <> '@began'")) == 1
        assert (await world.on("waiting"))[0].wake_at is not None, "an execution sleeps over its signal"

    return Scene(left=[send(c, parcel)], right=[send(c, parcel, 2)], check=check, patient="")
