"""A node on either store, its application, and clients with any role."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import Env, virtual_env
from horae.model.tenancy.principal import Permission, Role
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.open import open_store_driver

Api = httpx2.AsyncClient
KEY = base64.b64encode(bytes(range(32))).decode()  # a master key
both = pytest.mark.parametrize("node", ["sqlite", "postgresql"], indirect=True)


@asynccontextmanager
async def prepared(url: str, env: Env, settings: EngineSettings | None = None) -> AsyncIterator[ServerNode]:
    """Yield a node that is ready but whose services do not run."""
    driver = await open_store_driver(url, env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), settings)
    await node.prepare()
    try:
        yield node
    finally:
        await node.stop()


@asynccontextmanager
async def opened(url: str = "sqlite://", env: Env | None = None) -> AsyncIterator["People"]:
    """Yield a node and its users."""
    async with prepared(url, env or virtual_env()) as node:
        people = People(node)
        try:
            yield people
        finally:
            for one in people.clients:
                await one.aclose()


def client(node: ServerNode, key: str = "", address: str = "10.1.2.3", **headers: str) -> Api:
    """Return a client with a key, or without one, from an address."""
    own = {"authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(app=Application(node), client=(address, 5))
    return Api(transport=transport, base_url="http://horae.test", headers={**own, **headers})


class People:
    """Creates keys, and clients that use them."""

    def __init__(self, node: ServerNode) -> None:
        self.node, self.app = node, Application(node)
        self.clients: list[Api] = []

    def bearing(self, key: str = "", **headers: str) -> Api:
        """Return a client with a key, or without one."""
        own = {"authorization": f"Bearer {key}"} if key else {}
        transport = httpx2.ASGITransport(app=self.app)
        client = httpx2.AsyncClient(transport=transport, base_url="http://horae.test", headers={**own, **headers})
        self.clients.append(client)
        return client

    async def a(
        self,
        role: Role,
        *permissions: Permission,
        namespace: int = 1,
        queues: Sequence[str] = (),
        jobs: Sequence[str] = (),
        **headers: str,
    ) -> Api:
        """Somebody of a role."""
        made = await self.node.tenancy.keys.create(
            namespace, f"a {role}", role, permissions=permissions, queues=queues, jobs=jobs
        )
        return self.bearing(made.text, **headers)


async def done(answer: Any) -> Any:
    """Return the document of an answer, which must be a success."""
    got = await answer
    assert got.status_code < 300, got.text
    return got.json() if got.content else None
