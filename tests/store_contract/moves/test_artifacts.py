"""Artifacts: stored only for the holder of the execution, one content per name, and no content stays behind unused."""

import pytest

from horae.features.artifacts.store import artifacts
from horae.model.executions.output.artifact import Artifact
from tests.store_contract.world import World, released

DAY = 86_400_000_000


def file(name: str, location: str, attempt: int = 1) -> Artifact:
    return Artifact(name=name, attempt=attempt, size=3, type="text/plain", sha256="ab" * 32, location=location, at=7)


async def announce(world: World, *locations: str) -> None:
    for location in locations:
        await world.store.write(lambda at=location: artifacts.record_location(at, world.now()))


async def litter(world: World) -> list[str]:
    return sorted(location for _, location in await world.store.read(lambda: artifacts.litter(world.now(), 100)))


async def test_content_becomes_an_artifact_only_for_the_holder_of_the_execution(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w, thief = await world.worker(), await world.worker("thief")
    (slice,) = await w.claim(2)
    await announce(world, "x/1", "x/2", "x/3")

    async def keep(by, artifact):
        return await world.store.write(lambda: artifacts.store_artifact(by.session, parcel, 0, artifact, world.now()))

    assert await keep(thief, file("a", "x/1")) == "not held"
    assert await keep(w, file("a", "x/1", attempt=2)) == "not held"
    assert await keep(w, file("b", "x/1")) == "stored"
    assert await keep(w, file("a", "x/2")) == "stored"
    found = await world.store.read(lambda: artifacts.artifacts_of(parcel, 0, "", 10))
    assert [artifact.name for artifact in found] == ["a", "b"]
    assert found[1] == file("b", "x/1")
    assert await world.store.read(lambda: artifacts.artifacts_of(parcel, 1, "", 10)) == []
    assert await litter(world) == ["x/3"]
    await w.report(released(slice))
    assert await keep(w, file("c", "x/3")) == "not held"


@pytest.mark.parametrize("is_swept", [True, False])
async def test_an_upload_whose_content_may_be_deleted_is_not_stored(world: World, is_swept: bool):
    parcel, w = await world.parcel(await world.job(), 1), await world.worker()
    await w.claim(1)
    await announce(world, "x/1")
    world.clock.advance(artifacts.LONGEST_UPLOAD - (1 if is_swept else 0))
    if is_swept:
        await world.store.write(lambda: artifacts.forget_deleted_locations(["x/1"]))
    late = file("a", "x/1")
    keep = lambda: artifacts.store_artifact(w.session, parcel, 0, late, world.now())  # noqa: E731
    assert await world.store.write(keep) == "too late"
    assert await world.store.read(lambda: artifacts.artifacts_of(parcel, 0, "", 10)) == []


async def test_contents_to_delete_are_found_oldest_first_from_a_place_on(world: World):
    for location in ("b", "a", "c"):
        await announce(world, location)
        world.clock.advance(DAY if location == "a" else 0)
    first = await world.store.read(lambda: artifacts.litter(world.now(), 2))
    assert [location for _, location in first] == ["a", "b"]
    rest = await world.store.read(lambda: artifacts.litter(world.now(), 2, first[-1]))
    assert [location for _, location in rest] == ["c"]


async def test_the_first_content_of_a_reused_name_becomes_litter(world: World):
    parcel = await world.parcel(await world.job(), 1)
    w = await world.worker()
    await w.claim(1)
    await announce(world, "x/1", "x/2")
    for location in ("x/1", "x/2"):
        await world.store.write(
            lambda at=location: artifacts.store_artifact(w.session, parcel, 0, file("a", at), world.now())
        )  # fmt: skip

    assert (await world.store.read(lambda: artifacts.artifact_of(parcel, 0, "a"))).location == "x/2"
    assert await litter(world) == ["x/1"]
    await world.store.write(lambda: artifacts.forget_deleted_locations(["x/1"]))
    assert await litter(world) == []


async def test_an_execution_has_a_bounded_number_of_artifacts(world: World, monkeypatch):
    monkeypatch.setattr(artifacts, "MOST_ARTIFACTS", 1)
    parcel = await world.parcel(await world.job(), 1)
    w = await world.worker()
    await w.claim(1)
    await announce(world, "a/1", "a/2", "b")
    kept = [
        await world.store.write(
            lambda n=name: artifacts.store_artifact(w.session, parcel, 0, file(n[0], n), world.now())
        )
        for name in ("a/1", "a/2", "b")
    ]

    assert kept == ["stored", "stored", "too many"]


async def test_artifacts_of_a_deleted_execution_become_litter(world: World):
    gone, known = await world.parcel(await world.job(), 1), await world.parcel(await world.job("other"), 1)
    w = await world.worker()
    await w.claim(2)
    for parcel, name in ((gone, "a"), (gone, "b"), (known, "a")):
        at = f"{name}/{parcel}"
        await announce(world, at)
        await world.store.write(
            lambda p=parcel, n=name, at=at: artifacts.store_artifact(w.session, p, 0, file(n, at), world.now())
        )
    for shelf in ("running", "parcels"):
        column = "id" if shelf == "parcels" else "parcel"
        await world.do(f"DELETE FROM {shelf} WHERE {column} = $1 RETURNING 1", gone)

    at, rounds = artifacts.START, 0
    while not rounds or at != artifacts.START:
        at, rounds = (
            await world.store.write(lambda at=at: artifacts.delete_orphaned_page(at, 2, world.now())),
            rounds + 1,
        )

    assert rounds == 2
    assert await litter(world) == [f"a/{gone}", f"b/{gone}"]
    assert await world.store.read(lambda: artifacts.artifact_of(known, 0, "a")) is not None
    assert await world.store.read(lambda: artifacts.artifact_of(gone, 0, "a")) is None
