"""Released revisions never change; stores of all of them open with their rows; together they produce schema/."""

from collections import Counter
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from horae.env import SECOND, Env, VirtualClock
from horae.store.driver import Driver, one
from horae.store.executions.promote import LONG_AGO
from horae.store.migrations import revisions
from horae.store.migrations.revisions import HEAD, REVISIONS, fresh
from horae.store.open import open_store_driver
from horae.store.script import Fetch, Script, Statement
from tests.store_contract.rendered import described, making, rendered
from tests.store_contract.stored import Stored, fill, path, selected, stored
from tests.store_contract.world import World, lead, rank, success

VERSIONS = Path(revisions.__file__).parent / "versions"
NUMBERS = [name[:4] for name in REVISIONS]
DAY = 86_400 * SECOND
# Hashes of released files; a new revision adds its own.
FROZEN = {
    "0001_first.postgresql.sql": "11144fb1ac91f94cbf096a5bd878cc557c7d1e8da0c39a79f2f5f60cc1f35baf",
    "0001_first.py": "9d90a6a65b2ca66ec51e2f53a3f526535accb3691be1a104f5d5ee854aa5b2e7",
    "0001_first.sqlite.sql": "15209dc2f38ece59706abc07a916b2ed005c5ad21c5be37819e4ba182fe61ad3",
}
HOW = "CONTRIBUTING.md, A change of the schema"


@pytest.fixture(params=("file", "postgres"))
async def empty(request: pytest.FixtureRequest, tmp_path: Path, env: Env) -> AsyncIterator[Driver]:
    """A database without tables."""
    file = f"sqlite:///{tmp_path}/horae.db"
    driver = await open_store_driver(file if request.param == "file" else request.getfixturevalue("postgres_url"), env)
    yield driver
    await driver.close()


def test_a_released_revision_never_changes():
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(VERSIONS.glob("0*"))}
    changed = [name for name in FROZEN if found.get(name) != FROZEN[name]]
    assert changed == [], f"take these changes back, and write a new revision ({HOW})"
    assert sorted(found) == sorted(FROZEN), f"freeze the new revision with its hashes ({HOW})"


def test_every_revision_has_its_store():
    assert [number for number in NUMBERS if not path(number).exists()] == [], f"write it ({HOW})"


async def test_the_revisions_together_create_the_schema(empty: Driver):
    await empty.rewrite(lambda: making(rendered(empty.dialect)))
    says = await described(empty)
    await empty.rewrite(lambda: making(list(dropping(empty.dialect, says))))

    await empty.rewrite(lambda: making(fresh(empty.dialect)))

    assert await described(empty) == says, f"schema/ and the revisions differ: write a new revision ({HOW})"


def dropping(dialect: str, says: list[set[tuple[Any, ...]]]) -> list[str]:
    if dialect == "postgresql":
        return ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"]
    return ["DROP VIEW executions", *(f"DROP TABLE {name}" for name in sorted({row[0] for row in says[0]}))]


@pytest.mark.parametrize("revision", NUMBERS)
async def test_a_store_of_an_earlier_revision_keeps_its_rows_and_works(
    empty: Driver, env: Env, clock: VirtualClock, revision: str
):
    await fill(empty, revision)

    await empty.migrate()

    assert await empty.read(one(Statement("version", "SELECT version_num FROM alembic_version"))) == [(HEAD,)]
    for table in stored(revision):
        kept = await empty.read(lambda: selected(table.table, table.columns))  # noqa: B023
        assert Counter(table.read()) - Counter(kept) == Counter(), table.table
    await empty.write(lambda: without_samples(stored(revision)))
    clock.advance(DAY)
    await go_on(World(empty, env))


async def go_on(world: World) -> None:
    """Run queued executions, fires that are due now, and a new job."""
    job = await world.job("new")
    await world.parcel(job, 2)
    before = await world.on("queued")
    assert len(before) > 1, "an execution was queued before"
    worker = await world.worker("new")
    held = await worker.claim(100)
    assert {slice.job for slice in held} > {job.id}
    await worker.report(*(success(slice) for slice in held))
    rows = await world.rows("SELECT parcel, lo, hi FROM history")
    ended = {(parcel, item) for parcel, lo, hi in rows for item in range(lo, hi)}
    assert {(slice.parcel, item) for slice in held for item in range(slice.lo, slice.hi)} <= ended
    assert (await world.store.fire(100, lead)).parcels
    assert (await world.store.promote_due(LONG_AGO, 100, rank)).slices


def without_samples(tables: list[Stored]) -> Script[None]:
    """Delete invented rows that no server could read."""
    for table in tables:
        if not table.lived:
            yield Fetch(Statement("delete_samples", f"DELETE FROM {table.table}"))
