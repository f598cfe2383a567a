"""Count the files of `src` that three walks through Horae use.

    python -m tests.house.walks

The walks: a request that is submitted, executed and read; the fire of a cron trigger; the start of a workflow's next
step. A file counts if one of its functions is called in the server, on SQLite.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from horae.engine.server_node import ServerNode
from horae.env import VirtualClock, virtual_env
from horae.model.base.duration import MINUTE
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.server.conftest import Api, connected, key_for
from tests.server.working import HandWorker

SOURCE = str(Path(__file__).parents[2] / "src" / "horae") + "/"
COMMAND = {"name": "nightly", "command": "true"}
STEPS = [{"name": "first", "job": "nightly"}, {"name": "second", "job": "nightly", "after": ["first"]}]


class Server:
    """A node on a store in memory, whose services run only when the walk steps them."""

    def __init__(self, node: ServerNode, clock: VirtualClock, api: Api, worker: HandWorker) -> None:
        self.node, self.clock, self.api, self.worker = node, clock, api, worker

    @classmethod
    async def start(cls) -> "Server":
        clock = VirtualClock()
        env = virtual_env(clock=clock)
        driver = await open_store_driver("sqlite://", env)
        await driver.migrate()
        node = ServerNode(env, Store(driver, env))
        await node.prepare()
        app = Application(node)
        api = connected(app, authorization=f"Bearer {await key_for(node, 'admin')}")
        worker_api = connected(app, authorization=f"Bearer {await key_for(node, 'worker')}")
        return cls(node, clock, api, await HandWorker.register(worker_api))

    async def post(self, path: str, body: object) -> dict[str, object]:
        answer = await self.api.post(f"/api/v1/{path}", json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()


@contextmanager
def files_of_calls(files: set[str]) -> Iterator[None]:
    """Collect the files of `src/horae` whose functions are called."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            files.add(frame.f_code.co_filename.removeprefix(SOURCE))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


async def request() -> set[str]:
    """Create a job, submit an execution, execute it and read its result."""
    server, files = await Server.start(), set[str]()
    with files_of_calls(files):
        await server.post("jobs", COMMAND)
        execution = (await server.post("executions", {"job": "nightly"}))["executionId"]
        await server.worker.report(await server.worker.take())
        answer = await server.api.get(f"/api/v1/executions/{execution}")
    assert answer.json()["status"] == "success", answer.text
    await server.node.stop()
    return files


async def cron_fire() -> set[str]:
    """Fire a trigger whose minute has come."""
    server, files = await Server.start(), set[str]()
    await server.post("jobs", {**COMMAND, "schedule": {"cron": "* * * * *"}})
    server.clock.advance(2 * MINUTE)
    with files_of_calls(files):
        await server.node.firing.scheduler.step()
    assert (await server.api.get("/api/v1/executions")).json()["items"], "nothing fired"
    await server.node.stop()
    return files


async def next_step() -> set[str]:
    """Start the second step of a workflow, in the report of its first."""
    server, files = await Server.start(), set[str]()
    await server.post("jobs", COMMAND)
    await server.post("jobs", {"name": "flow", "workflow": {"steps": STEPS}})
    await server.post("executions", {"job": "flow"})
    await server.node.workflows.opener.step()
    grants = await server.worker.take()
    with files_of_calls(files):
        await server.worker.report(grants)
    assert await server.worker.take(), "the second step did not start"
    await server.node.stop()
    return files


WALKS = {"a request": request, "a cron fire": cron_fire, "the next step": next_step}


def main() -> None:
    for name, walk in WALKS.items():
        files = asyncio.run(walk())
        print(f"{name}: {len(files)} files")
        if "-v" in sys.argv:
            print("\n".join(f"  {file}" for file in sorted(files)))


if __name__ == "__main__":
    main()
