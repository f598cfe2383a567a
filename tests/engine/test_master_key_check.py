"""Two servers, one without the master key: only the other one grants executions that need it."""

from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Raw

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.model.fleet.server import KEYLESS
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.fleet import sessions
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE, World

OLD, NEW = (b64encode(bytes([n]) * 32).decode() for n in (1, 2))
pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


@pytest.fixture
async def servers(world: World, monkeypatch: Any) -> AsyncIterator[dict[str, Stage]]:
    """Make three servers on one store: with the key, without a key, and with another key."""

    async def server_time() -> int:
        return world.now()

    monkeypatch.setattr(world.driver, "server_time", server_time)
    made = {}
    for name, keys in {"whole": OLD, "none": "", "other": NEW}.items():
        node = ServerNode(world.env, Store(world.driver, world.env), EngineSettings(master_keys=keys))
        node.fleet.begin({"api", "gateway"}, f"http://{name}")
        made[name] = Stage(world, node)
    await made["whole"].node.prepare()
    await made["whole"].node.base.secrets.put(NAMESPACE, "TOKEN", "hush")
    for stage in made.values():
        await stage.node.prepare()
    yield made
    for stage in made.values():
        await stage.node.gateway.stop()
        await stage.node.submitter.close()


async def look(servers: dict[str, Stage]) -> None:
    for stage in servers.values():
        await stage.node.fleet.master_key_check.step()
        await stage.node.fleet.presence.step()
        await stage.node.base.directory.load()
        await stage.node.base.directory.step()


async def granted(stage: Stage) -> int:
    worker = await stage.worker(10, secrets=True)
    return sum(slice.hi - slice.lo for slice in await worker.ask())


async def test_only_a_server_with_the_key_grants_executions_that_need_it(servers: dict[str, Stage]):
    whole = servers["whole"]
    plain = await whole.job("plain")
    await whole.job("discreet", env={"TOKEN": "secret://TOKEN"})
    for _ in range(2):
        await whole.submit("plain")
    id = await whole.submit("discreet")
    await look(servers)

    for name in ("none", "other"):
        worker = await servers[name].worker(1, secrets=True)
        assert [slice.job for slice in await worker.ask()] == [plain]
        explained = await servers[name].node.work.explainer.execution(NAMESPACE, id)
        assert "no-key" in {blocker.gate for blocker in explained.blockers}
    assert await granted(whole) == 1


async def test_params_that_are_sealed_wait_for_a_server_that_opens_them(servers: dict[str, Stage]):
    await servers["whole"].job("sensitive", sensitive=True)
    await look(servers)
    await servers["whole"].node.submitter.submit(
        NAMESPACE, [Submit(job="sensitive", params=Raw(b'{"a":1}'))], origin="submit"
    )
    await look(servers)
    assert await granted(servers["none"]) == 0
    assert await granted(servers["whole"]) == 1


async def test_servers_without_the_key_are_reported(servers: dict[str, Stage], world: World):
    await look(servers)
    known = await servers["whole"].node.store.read(lambda: sessions.servers(0))
    assert {server.url for server in known if KEYLESS in server.roles} == {"http://none", "http://other"}
    assert not servers["whole"].node.base.directory.keyless


async def test_an_unused_missing_key_withholds_nothing(servers: dict[str, Stage], world: World):
    both = ServerNode(world.env, Store(world.driver, world.env), EngineSettings(master_keys=f"{NEW},{OLD}"))
    await both.prepare()
    await both.tenancy.sealed_kinds.rotate()
    servers["both"] = Stage(world, both)
    other = servers["other"].node
    await other.base.sealer.prepare()
    await other.fleet.master_key_check.step()
    assert (other.base.sealer.can_seal, other.base.directory.keyless) == (True, False)
    assert (await servers["whole"].node.fleet.master_key_check.step(), servers["whole"].node.base.directory.keyless)[1]
