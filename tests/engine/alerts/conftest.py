"""A stage for tests of alerts; its store uses the clock of the test."""

import pytest

from horae.engine.server_node import ServerNode
from tests.engine.alerts.stage import SETTINGS
from tests.engine.explain_stage import Stage
from tests.store_contract.world import World


@pytest.fixture
def store_url() -> str:
    return "sqlite://"  # tests/store_contract has every statement on every store


@pytest.fixture
async def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> Stage:
    async def server_time() -> int:
        return world.now()

    monkeypatch.setattr(world.driver, "server_time", server_time)
    node = ServerNode(world.env, world.store, SETTINGS)
    await node.prepare()
    return Stage(world, node)
