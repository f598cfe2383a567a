"""A stage for duels: a scene is set once, saved, restored before each interleaving, and judged after it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID

from msgspec import Struct

from horae.env import VirtualClock, virtual_env
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.session import LIVE, seen_on
from horae.store.driver import one
from horae.store.schema import all_tables as schema
from horae.store.script import ScriptFactory, Statement
from tests.races.duel import LEFT, RIGHT, SETTINGS, Duel, Explorer, Order, Ran, open_driver
from tests.store_contract.world import World

Stamp = tuple[UUID, int, int]  # session, channel, n
Told = list[tuple[Stamp, list[RunningSlice] | None]]  # the answer to a worker; None: any slice with its number


class Move(Struct, frozen=True):
    """A script with a name, and the answer to workers that follows from its result."""

    name: str
    make: ScriptFactory[Any]
    told: Callable[[Any], Told] = lambda result: []
    refusals: tuple[type[Exception], ...] = ()  # errors that count as answers


class Scene(Struct, frozen=True, kw_only=True):
    """Two sides, each with moves that run one after another, and conditions that hold beside the invariants."""

    left: list[Move]
    right: list[Move]
    check: Callable[[World, list[Any], list[Any]], Awaitable[None]] | None = None
    patient: str = LEFT + RIGHT  # the sides that may wait for a lock


SetScene = Callable[[World], Awaitable[Scene]]


class Verdict(Struct):
    """The result of a scene: interleavings run, those in which a side waited, and those that broke a rule."""

    runs: int = 0
    blocked: int = 0
    complete: bool = False
    violations: list[tuple[Order, str]] = []


class Stage:
    """One database on which scenes are played."""

    def __init__(self, world: World, duel: Duel) -> None:
        self.world, self.duel = world, duel
        self._restore = ""

    @classmethod
    async def open(cls, url: str) -> "Stage":
        env = virtual_env(seed=11)
        driver = await open_driver(url, env)
        for setting in SETTINGS:
            await driver.write(one(Statement("setting", setting)))
        return cls(World(driver, env), await Duel.open(url, env))

    async def close(self) -> None:
        await self.duel.close()
        await self.world.driver.close()

    async def play(
        self,
        set_scene: SetScene,
        *,
        most: int | None = None,
        seed: int = 1,
        changed: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> Verdict:
        """Play interleavings of a scene: all of them, or at most so many, drawn by the seed.

        With code that was `changed` for the moves alone, the first violation ends it.
        """
        scene = await self._set(set_scene)
        explorer, verdict = Explorer(seed), Verdict()
        while (most is None or verdict.runs < most) and (prefix := explorer.next()) is not None:
            await self._put_back()
            with changed() if changed else nullcontext():
                ran = await self.duel.run(_moves(scene), explorer.chooser(prefix))
            explorer.visited(prefix, ran.order)
            verdict.runs += 1
            verdict.blocked += bool(ran.waited)
            wrong = await self._judge(scene, ran)
            if wrong:
                verdict.violations.append((ran.order, f"{wrong}\n  {' '.join(ran.steps)}"))
                if changed:
                    return verdict
        verdict.complete = explorer.exhausted
        return verdict

    async def _set(self, set_scene: SetScene) -> Scene:
        clock = self.world.clock
        assert isinstance(clock, VirtualClock)
        await self.world.wipe()
        scene = await set_scene(self.world)
        self._held = {(s.parcel, item, s.attempt) for s in await self.world.on("running") for item in _items(s)}
        await self._photograph()
        return scene

    async def _photograph(self) -> None:
        """Copy every table with rows, and prepare the statements that restore it."""
        tables = [table.name for table in schema.metadata.sorted_tables]
        holding = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables)
        filled = [row[0] for row in await self.duel.onlooker.fetch(holding)]
        copies = [f"CREATE UNLOGGED TABLE photograph.{name} AS TABLE {name}" for name in filled]
        await self.duel.onlooker.execute(
            ";".join(["DROP SCHEMA IF EXISTS photograph CASCADE", "CREATE SCHEMA photograph", *copies])
        )
        put_back = [f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM photograph.{name}" for name in filled]
        self._restore = ";".join([*(f"DELETE FROM {name}" for name in tables), *put_back])

    async def _put_back(self) -> None:
        await self.duel.onlooker.execute(self._restore)

    async def _judge(self, scene: Scene, ran: Ran) -> str | None:
        """Return the violation after an interleaving as text; None if there is none."""
        left, right = ran.results[LEFT], ran.results[RIGHT]
        errors = [
            result
            for move, result in _played(scene, left, right)
            if isinstance(result, Exception) and not isinstance(result, move.refusals)
        ]
        if errors:
            return f"an operation failed: {errors[0]!r}"
        if ran.retries:
            return "a deadlock or a serialization failure"
        if not ran.waited <= set(scene.patient):
            return "an operation waited for rows that it must skip"
        try:
            await self.world.check()
            await self._judge_answers(_told(scene, left, right))
            if scene.check is not None:
                await scene.check(self.world, left, right)
        except AssertionError as wrong:
            return str(wrong).split("\n")[0] or "an assertion of the scene failed"
        return None

    async def _judge_answers(self, told: Told) -> None:
        """Check I12, and that nothing is granted twice."""
        granted = [item for _, slices in told for s in slices or () for item in _grants(s)]
        assert len(granted) == len(set(granted)), "an item was granted twice under one attempt"
        rows = await self.world.rows("SELECT id, state, seen FROM sessions")
        sessions = {row[0]: (row[1], bytes(row[2])) for row in rows}
        for s in await self.world.on("running"):
            state, seen = sessions[s.session]
            if state not in LIVE:
                continue
            assert s.n <= seen_on(seen, s.channel), "a slice has an exchange number that is still free"
            answers = [slices for stamp, slices in told if stamp == (s.session, s.channel, s.n)]
            for slices in answers:  # whichever of them reaches the worker
                known = self._held | {grant for slice in slices or () for grant in _grants(slice)}
                heard = slices is None or known.issuperset(_grants(s))
                assert heard, "I12: a live session runs a slice that its worker never learns of"


def _moves(scene: Scene) -> dict[str, Sequence[ScriptFactory[Any]]]:
    return {LEFT: [move.make for move in scene.left], RIGHT: [move.make for move in scene.right]}


def _played(scene: Scene, left: list[Any], right: list[Any]) -> list[tuple[Move, Any]]:
    return [*zip(scene.left, left, strict=True), *zip(scene.right, right, strict=True)]


def _told(scene: Scene, left: list[Any], right: list[Any]) -> Told:
    return [told for move, result in _played(scene, left, right) for told in move.told(result)]


def _items(slice: RunningSlice) -> range:
    return range(slice.lo, slice.hi)


def _grants(slice: RunningSlice) -> list[tuple[UUID, int, int]]:
    return [(slice.parcel, item, slice.attempt) for item in _items(slice)]
