"""The libraries that a server loads at its start: each unused heavy library would delay every start."""

import subprocess
import sys
from pathlib import Path

from horae.server import dispatch as door

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


def test_a_first_start_loads_no_unused_library(tmp_path: Path):
    shown = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path / "horae.db")], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert door.__name__ in loaded
    assert loaded & UNUSED == set()
