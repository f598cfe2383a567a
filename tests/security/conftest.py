"""A node on either store, ready but without its services, and whoever administers it."""

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
    """What the node is told; a module that needs more says so by a fixture of this name."""
    return EngineSettings(artifacts=str(tmp_path / "artifacts"), master_keys=KEY)


@pytest.fixture
async def node(
    request: pytest.FixtureRequest, clock: VirtualClock, engine_settings: EngineSettings
) -> AsyncIterator[ServerNode]:
    """On SQLite, or where a test is marked with `both` on PostgreSQL, too."""
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    url = "sqlite://" if is_plain else request.getfixturevalue("postgres_url")
    async with prepared(url, virtual_env(clock=clock), engine_settings) as node:
        yield node


@pytest.fixture
async def api(node: ServerNode) -> AsyncIterator[Api]:
    """The installation's administrator."""
    key = await node.tenancy.keys.ensure_admin_key()
    async with client(node, str(key)) as api:
        yield api


@pytest.fixture
async def connect(node: ServerNode) -> AsyncIterator[Connect]:
    """Makes clients with these headers."""
    app, clients = Application(node), []

    def make(**headers: str) -> Api:
        clients.append(Api(transport=httpx2.ASGITransport(app=app), base_url="http://horae.test", headers=headers))
        return clients[-1]

    yield make
    for one in clients:
        await one.aclose()
