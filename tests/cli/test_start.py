"""What a server loads before it serves: every heavy library that is not needed delays each start."""

import subprocess
import sys
from pathlib import Path

from horae.server import door

UNUSED = {"alembic", "pydantic", "playwright", "sqlalchemy", "uvicorn"}
START = """
import asyncio, sys
from pathlib import Path
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import system_env
from horae.server.app import Application

async def start():
    node = await ServerNode.open(system_env(), f"sqlite:///{sys.argv[1]}", EngineSettings(), "(a test)")
    Application(node)
    await node.stop()

asyncio.run(start())
print(*sys.modules)
"""


def test_a_first_start_loads_nothing_it_does_not_use(tmp_path: Path):
    shown = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path / "horae.db")], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert door.__name__ in loaded
    assert loaded & UNUSED == set()
