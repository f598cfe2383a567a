"""A fleet with workers that run examples/worker-js/worker.mjs."""

import os
import subprocess
from pathlib import Path

from tests.acceptance.fleet import KEY, ROOT, Fleet, Process
from tests.waiting import eventually_sync

WORKER = ROOT / "examples" / "worker-js" / "worker.mjs"
FUNCTIONS = Path(__file__).with_name("acceptance.mjs")


class NodeProcess(Process):
    """One worker in JavaScript with its log."""

    def __init__(self, folder: Path, name: str, node: str, functions: Path, env: dict[str, str]) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [node, WORKER, functions],
                cwd=folder,
                env=os.environ | env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


class JsFleet(Fleet):
    """The usual servers, with workers run by Node."""

    def __init__(self, folder: Path, store: str, node: str, functions: Path = FUNCTIONS) -> None:
        super().__init__(folder, store)
        self.node, self.functions = node, functions

    def add_worker(self, name: str, *, concurrency: int = 4, servers: str = "", **env: str) -> Process:
        own = {
            "HORAE_URL": servers or ",".join(self.urls.values()),
            "HORAE_KEY": KEY,
            "HORAE_WORKER_NAME": name,
            "HORAE_CONCURRENCY": str(concurrency),
            "HORAE_DRAIN_GRACE": "2s",
        }
        self.workers[name] = NodeProcess(self.folder, name, self.node, self.functions, own | env)
        eventually_sync(lambda: self.worker(name)["status"] == "live", within=20)
        return self.workers[name]
