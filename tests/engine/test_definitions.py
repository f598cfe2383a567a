"""The cache of definitions: each version is read once, and the size is limited."""

from typing import Any

import pytest

from horae.engine.definitions import definition_cache
from horae.engine.definitions.definition_cache import OVERHEAD, DefinitionCache
from horae.model.definitions.retry import RetryPolicy
from tests.store_contract.world import World


@pytest.fixture
def reads(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of definitions in each read of the store."""
    asked: list[int] = []
    read = world.store.definitions

    async def counted(wanted: Any) -> Any:
        asked.append(len(wanted))
        return await read(wanted)

    monkeypatch.setattr(world.store, "definitions", counted)
    return asked


async def test_a_version_is_read_once(world: World, reads: list[int]):
    a, b = [(await world.job(name, retry=RetryPolicy(retries=7))).id for name in "ab"]
    kept = DefinitionCache(world.store)
    await kept.get([(a, 1)])
    found = await kept.get([(a, 1), (b, 1)])

    assert reads == [1, 1]
    assert {key: known.retry.retries for key, known in found.items()} == {(a, 1): 7, (b, 1): 7}
    assert kept.policies.keys() == found.keys()


async def test_the_least_recently_used_definition_is_removed_first(
    world: World, reads: list[int], monkeypatch: pytest.MonkeyPatch
):
    a, b, c = [((await world.job(name)).id, 1) for name in "abc"]
    monkeypatch.setattr(definition_cache, "MOST", 2)
    kept = DefinitionCache(world.store)
    for wanted in ([a], [b], [a], [c]):
        await kept.get(wanted)
    assert kept.policies.keys() == {a, c}

    found = await kept.get([a, b, c])  # more than the cache holds: some are removed during the call

    assert found.keys() == {a, b, c}
    assert len(kept.policies) == 2
    assert reads == [1, 1, 1, 1]


async def test_the_cache_is_limited_by_bytes(world: World, monkeypatch: pytest.MonkeyPatch):
    jobs = [((await world.job(name, params={"text": "x" * 5000})).id, 1) for name in "abcd"]
    monkeypatch.setattr(definition_cache, "MOST_BYTES", 2 * (6000 + OVERHEAD))
    kept = DefinitionCache(world.store)
    for job in jobs:
        await kept.get([job])

    assert list(kept.policies) == jobs[2:]
