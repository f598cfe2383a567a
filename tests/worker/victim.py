"""A worker process to be killed: it runs a command and a function, each with stubborn children."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from horae.model.definitions.tasks import CommandTask, PythonTask
from tests.waiting import eventually
from tests.worker.functions import app
from tests.worker.local import shop
from tests.worker.test_command import STUBBORN


async def main(folder: Path) -> None:
    async with shop(app) as it:
        it.submit(CommandTask(argv=(sys.executable, "-c", STUBBORN, str(folder))), name="command")
        other = folder / "python"
        other.mkdir()
        it.submit(PythonTask(function="breed", isolation="process"), {"folder": str(other)}, name="python")
        await eventually(lambda: len(list(folder.rglob("*.pid"))) == 6)
        (folder / "guard").write_text(str(it.worker.spawner._guard.pid))
        (folder / "folder").write_text(str(it.worker.spawner.folder))
        for path in other.iterdir():
            path.rename(folder / f"python-{path.name}")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
