"""Secrets are found by namespace and name, and change as a whole."""

from horae.store.tenancy import secrets


async def test_a_secret_is_set_listed_read_and_removed_in_its_namespace(world):
    write, read = world.store.write, world.store.read
    first = await write(lambda: secrets.put(1, "db", b"one", world.now()))
    await write(lambda: secrets.put(2, "db", b"other", world.now()))
    await write(lambda: secrets.put(1, "api_key", b"three", world.now()))
    again = await write(lambda: secrets.put(1, "db", b"two", world.now()))

    assert (first.version, again.version, again.created_at) == (1, 2, first.created_at)
    assert [one.name for one in await read(lambda: secrets.page(1, "", 10))] == ["api_key", "db"]
    assert [one.name for one in await read(lambda: secrets.page(1, "api_key", 10))] == ["db"]
    found = await read(lambda: secrets.by_names(1, ["db", "api_key", "none"]))
    assert {name: one.sealed for name, one in found.items()} == {"db": b"two", "api_key": b"three"}
    assert await write(lambda: secrets.delete(1, "db"))
    assert not await write(lambda: secrets.delete(1, "db"))
    assert (await read(lambda: secrets.by_names(2, ["db"])))["db"].sealed == b"other"


async def test_resealing_changes_only_unchanged_values(world):
    write, read = world.store.write, world.store.read
    await write(lambda: secrets.put(1, "a", b"old", world.now()))
    await write(lambda: secrets.put(2, "b", b"old", world.now()))

    assert await read(lambda: secrets.all_after(0, "")) == [(1, "a", b"old"), (2, "b", b"old")]
    assert await read(lambda: secrets.all_after(1, "a")) == [(2, "b", b"old")]
    assert await write(lambda: secrets.reseal(1, "a", b"old", b"new"))
    assert not await write(lambda: secrets.reseal(2, "b", b"changed meanwhile", b"new"))
    assert {row[2] for row in await read(lambda: secrets.all_after(0, ""))} == {b"new", b"old"}


async def test_jobs_that_mention_a_secret_are_found(world):
    await world.job("uses", env={"A": "x secret://db_1"})
    await world.job("other", env={"A": "secret://db"})

    assert [name for name, _ in await world.store.read(lambda: secrets.mentions(1, "db_1"))] == ["uses"]
    assert [name for name, _ in await world.store.read(lambda: secrets.mentions(2, "db_1"))] == []
