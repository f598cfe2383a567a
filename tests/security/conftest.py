"""A node on either store, ready but without its services, and its administrator."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import VirtualClock, virtual_env
from horae.server.app import Application
from tests.security.people import KEY, Api, client, prepared

Connect = Callable[..., Api]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def engine_settings(tmp_path: Path) -> EngineSettings:
    """Return the node's settings; a module overrides this fixture for others."""
    return EngineSettings(artifacts=str(tmp_path / "artifacts"), master_keys=KEY)


@pytest.fixture
async def node(
    request: pytest.FixtureRequest, clock: VirtualClock, engine_settings: EngineSettings
) -> AsyncIterator[ServerNode]:
    """Yield a node on SQLite; tests marked with `both` also run on PostgreSQL."""
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    url = "sqlite://" if is_plain else request.getfixturevalue("postgres_url")
    async with prepared(url, virtual_env(clock=clock), engine_settings) as node:
        yield node


@pytest.fixture
async def api(node: ServerNode) -> AsyncIterator[Api]:
    """Yield a client of the installation's administrator."""
    key = await node.tenancy.keys.ensure_admin_key()
    async with client(node, str(key)) as api:
        yield api


@pytest.fixture
async def connect(node: ServerNode) -> AsyncIterator[Connect]:
    """Return a factory of clients with given headers."""
    app, clients = Application(node), []

    def make(**headers: str) -> Api:
        clients.append(Api(transport=httpx2.ASGITransport(app=app), base_url="http://horae.test", headers=headers))
        return clients[-1]

    yield make
    for one in clients:
        await one.aclose()
