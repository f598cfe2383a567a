"""Scenes of the archive: an execution is in one file only, and an erased one is in none."""

from typing import Any

from horae.features.archive.store import archives
from horae.features.archive.store.archives import ANY, LAST, Archive
from horae.features.artifacts.store import artifacts
from horae.features.erasure.store import executions as erasure
from horae.model.base.ids import instant_of
from horae.store.expiry.expiry import EndedParcel
from tests.races.scenes import cast, holding, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, success

LATER = 60_000_000


async def ended_parcels(world: World) -> list[EndedParcel]:
    """Return ended executions in two parcels that may be archived."""
    c = await cast(world)
    parcels: list[EndedParcel] = []
    for name in ("a", "b"):
        parcel, w, slice = await holding(c, 2, name)
        await w.report(success(slice))
        parcels.append((parcel, world.now() + LATER))
    return parcels


async def put(world: World, parcels: list[EndedParcel]) -> tuple[Archive, Move]:
    """Return a written file, and the move that records it."""
    id, at = world.env.new_id(), instant_of(parcels[0][0])
    made = Archive(
        id=id, namespace=NAMESPACE, first_at=at, last_at=at, executions=4, outcomes=ANY, jobs=1, bytes=1,
        location=f"archive/{id}",
    )  # fmt: skip
    await world.store.write(lambda: archives.announce(NAMESPACE, made.location, world.now()))
    return made, Move("put", lambda: archives.put(made, {}, parcels))


async def files(world: World) -> list[str]:
    return [location for (location,) in await world.rows("SELECT location FROM archives")]


@scene("archive / archive, the same executions")
async def _(world: World) -> Scene:
    parcels = await ended_parcels(world)
    left, right = [(await put(world, parcels))[1] for _ in range(2)]

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted((*left, *right)) == [False, True], "both named a file, or none did"
        assert len(await files(world)) == 1, "the same executions are in two files"

    return Scene(left=[left], right=[right], check=check)


@scene("archive / erasure from the same file")
async def _(world: World) -> Scene:
    parcels = await ended_parcels(world)
    _, naming = await put(world, parcels)
    erasing = [
        Move("erase", lambda: erasure.erase(parcels[0][0], 0)),
        Move("spoil", lambda: archives.exclude_announced(NAMESPACE)),
        Move("look", lambda: archives.before(NAMESPACE, LAST, 10)),
    ]

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await files(world) == [file.location for file in right[2]], "a file appeared without the erasure"
        assert left[0] == bool(right[2])
        assert len(await world.rows("SELECT 1 FROM litter")) == (not left[0]), "the file is not recorded as litter"

    return Scene(left=[naming], right=erasing, check=check)


@scene("erasure / erasure, from one file")
async def _(world: World) -> Scene:
    parcels = await ended_parcels(world)
    made, naming = await put(world, parcels)
    await world.store.write(naming.make)
    for place in ("x", "y"):
        await world.store.write(lambda at=place: artifacts.record_location(at, world.now()))
    left, right = [
        Move("move", lambda at=place: archives.move(made, at, 1))  # type: ignore[misc]
        for place in ("x", "y")
    ]

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted((*left, *right)) == [False, True], "one restored the data that the other erased"
        named, litter = await files(world), await world.rows("SELECT location FROM litter")
        assert sorted([*named, *(location for (location,) in litter)]) == sorted(["x", "y", made.location])

    return Scene(left=[left], right=[right], check=check)
