"""The runner: its reports about the store while services fail and recover."""

from random import Random

from structlog.testing import capture_logs

from horae.engine.server_node import ServerNode
from horae.engine.service import Alarm, Runner
from horae.env import Env, system_env, virtual_env
from horae.errors import StoreUnavailable
from horae.features.statistics.part import StatisticsPart
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from tests.waiting import eventually


class Steps:
    """A service with or without a connection to the store."""

    def __init__(self, name: str, wait: float = 0.001) -> None:
        self.name, self.alarm, self.wait = name, Alarm(), wait
        self.reaches, self.count = True, 0
        self.error: Exception = StoreUnavailable("The store is away.")

    async def step(self) -> float:
        self.count += 1
        if not self.reaches:
            raise self.error
        return self.wait


def quick() -> Env:
    """Services without the store retry after a short wait."""
    env = system_env()

    class Soon(Random):
        def uniform(self, a: float, b: float) -> float:
            return 0.001

    return Env(clock=env.clock, ids=env.ids, rng=Soon())


async def test_a_service_without_store_access_does_not_end_an_outage():
    said: list[bool] = []
    runner = Runner(quick(), said.append)
    asks, idle = Steps("asks"), Steps("idle")
    asks.reaches = False

    runner.start(asks)
    await eventually(lambda: asks.count > 1)
    said.clear()
    runner.start(idle)
    await eventually(lambda: idle.count > 3)
    assert set(said) == {False}

    asks.reaches = True
    await eventually(lambda: said[-1])
    await runner.stop()


async def test_a_service_that_fails_for_another_reason_than_the_store_does_not_prolong_an_outage():
    said: list[bool] = []
    runner, broken = Runner(quick(), said.append), Steps("broken")
    broken.reaches = False
    runner.start(broken)
    await eventually(lambda: False in said)

    broken.error = ValueError("a defect")
    await eventually(lambda: said[-1])
    await runner.stop()


async def test_a_stopping_server_lets_each_part_write_although_another_part_cannot(monkeypatch):
    env = virtual_env()
    driver = MemoryDriver(env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env))
    await node.start()
    written = []

    def write(name: str, error: Exception | None = None):
        async def flush() -> None:
            written.append(name)
            if error is not None:
                raise error

        return flush

    monkeypatch.setattr(node.part(StatisticsPart), "flush", write("statistics", StoreUnavailable("It is away.")))
    for part in (node.fleet, node.admission):
        monkeypatch.setattr(part, "flush", write(type(part).__name__))
    await node.stop()

    assert written == ["statistics", "FleetPart", "AdmissionPart"]


async def test_an_outage_and_its_end_are_logged_once():
    said: list[bool] = []
    runner = Runner(quick(), said.append)
    services = [Steps(name) for name in ("a", "b", "c")]
    for one in services:
        one.reaches = False
        runner.start(one)
    with capture_logs() as lines:
        await eventually(lambda: all(one.count > 3 for one in services))
        for one in services:
            one.reaches = True
        await eventually(lambda: said[-1])
    await runner.stop()

    assert [line["event"] for line in lines] == ["store unavailable", "store is back"]
    assert lines[1]["seconds"] >= 0
