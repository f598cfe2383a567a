"""An apply of many documents does not block the server's other work."""

import asyncio
from pathlib import Path

from horae.engine.definitions.document_applier import Documents
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import system_env
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.store_contract.world import NAMESPACE


async def test_reads_are_answered_while_a_file_is_written(tmp_path: Path):
    env = system_env()
    driver = await open_store_driver(f"sqlite:///{tmp_path}/horae.db", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), EngineSettings())
    jobs = [{"name": f"job-{n}", "command": "x"} for n in range(300)]
    try:
        applying = asyncio.create_task(node.definitions.document_applier.apply(NAMESPACE, Documents(jobs=jobs)))
        answers = 0
        while not applying.done():
            seen = len((await node.definitions.jobs.list(NAMESPACE, limit=500)).items)
            assert seen in (0, len(jobs)), "all of them or none"
            answers += not applying.done()
            await asyncio.sleep(0)
        assert len((await applying).items) == len(jobs)
        assert answers > 10  # 3 if the loop is held from the first statement to the last
    finally:
        await driver.close()
