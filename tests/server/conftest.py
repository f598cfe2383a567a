"""A node on an in-memory store, its application, and clients with the credentials of each role."""

from collections.abc import AsyncIterator, Callable

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.env import Env, VirtualClock, virtual_env
from horae.model.executions.tracer import Tracer
from horae.model.tenancy.principal import Role
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.open import open_store_driver

Api = httpx2.AsyncClient
Connect = Callable[..., Api]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def env(clock: VirtualClock) -> Env:
    return virtual_env(clock=clock)


@pytest.fixture
def tracer() -> Tracer | None:
    """Return the tracer of the node; most tests need none."""
    return None


@pytest.fixture
async def node(env: Env, tracer: Tracer | None) -> AsyncIterator[ServerNode]:
    """Yield a node that is ready but whose services do not run, so that they act only on request."""
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), tracer=tracer)
    await node.prepare()
    yield node
    await node.stop()


@pytest.fixture
def app(node: ServerNode) -> Application:
    return Application(node)


def connected(app: Application, **headers: str) -> Api:
    """Return a client of an application, without a socket."""
    transport = httpx2.ASGITransport(app=app)
    return httpx2.AsyncClient(transport=transport, base_url="http://horae.test", headers=headers)


@pytest.fixture
async def connect(app: Application) -> AsyncIterator[Connect]:
    """Return a function that creates clients of the application."""
    clients: list[Api] = []

    def make(**headers: str) -> Api:
        clients.append(connected(app, **headers))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


async def key_for(node: ServerNode, role: Role) -> str:
    permissions = ("installation",) if role == "admin" else ()
    return (await node.tenancy.keys.create(1, f"a test's {role}", role, permissions=permissions)).text


@pytest.fixture
async def api(connect: Connect, node: ServerNode) -> Api:
    """Return the client of an administrator."""
    return connect(authorization=f"Bearer {await key_for(node, 'admin')}")


@pytest.fixture
async def worker(connect: Connect, node: ServerNode) -> Api:
    """Return the client of a worker."""
    return connect(authorization=f"Bearer {await key_for(node, 'worker')}")


@pytest.fixture
def anonymous(connect: Connect) -> Api:
    """Return a client without a credential."""
    return connect()
