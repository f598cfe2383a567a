"""Real processes for acceptance tests: servers and workers started by the command line, killed by signals."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.waiting import eventually_sync

KEY = "hk_acceptance_" + "k" * 43
FAST = {"HORAE_SESSION_TIMEOUT": "3s", "HORAE_HEARTBEAT": "1s", "HORAE_ADMIN_KEY": KEY, "PYTHONUNBUFFERED": "1"}
FAST |= {"HORAE_OUTBOUND_ALLOW": "127.0.0.1"}  # http jobs call sites of the tests
APP = "tests.acceptance.jobs:app"
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """One `horae` process with its log."""

    def __init__(self, folder: Path, name: str, args: list[str], env: dict[str, str]) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "horae.cli.main", *args],
                cwd=folder,
                env=os.environ | FAST | {"PYTHONPATH": f"{ROOT}/src{os.pathsep}{ROOT}"} | env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait()

    def wait(self, seconds: float = 20) -> int:
        return self._process.wait(seconds)

    def children(self) -> list[int]:
        """Return all descendants, found in /proc."""
        return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]


class Fleet:
    """Servers on one store, workers, and a client that talks to any server."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.store = folder, store
        self.servers: dict[str, Process] = {}
        self.workers: dict[str, Process] = {}
        self.urls: dict[str, str] = {}
        self._http = httpx2.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=45)

    def add_server(self, name: str, *, ready: bool = True, **env: str) -> str:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        args = ["server", "--store", self.store, "--data", str(self.folder), "--port", str(port)]
        self.servers[name] = Process(self.folder, name, args, env)
        self.urls[name] = url
        if ready:
            eventually_sync(lambda: self.is_ready(url), within=20)
        return url

    def add_worker(self, name: str, *, concurrency: int = 4, servers: str = "", **env: str) -> Process:
        args = [
            "worker", "--server", servers or ",".join(self.urls.values()), "--key", KEY, "--app", APP,
            "--name", name, "--concurrency", str(concurrency), "--drain-grace", "2s",
        ]  # fmt: skip
        self.workers[name] = Process(self.folder, name, args, env)
        eventually_sync(lambda: self.worker(name)["status"] == "live", within=20)
        return self.workers[name]

    def is_ready(self, url: str) -> bool:
        try:
            return self._http.get(f"{url}/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def request(self, method: str, path: str, body: Any = None, *, server: str = "", **headers: str) -> httpx2.Response:
        url = self.urls[server] if server else next(iter(self.urls.values()))
        return self._http.request(method, f"{url}/api/v1{path}", json=body, headers=headers)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        answer = self.request("POST", path, body, **options)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def get(self, path: str, **options: Any) -> Any:
        answer = self.request("GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def worker(self, name: str) -> Any:
        answer = self.request("GET", f"/workers/{name}")
        return answer.json() if answer.status_code == 200 else {"status": "unknown"}

    def submit(self, job: str, params: Any = None, **options: Any) -> str:
        answer = self.post("/executions", {"job": job, "params": params or {}, **options})
        id: str = answer["items"][0]["executionId"] if "items" in answer else answer["executionId"]
        return id

    def execution(self, id: str) -> Any:
        return self.get(f"/executions/{id}")

    def until(self, id: str, *states: str, within: float = 30) -> Any:
        """Return the execution once it is in one of these states."""
        return eventually_sync(lambda: (e := self.execution(id))["status"] in states and e, within=within)

    def close(self) -> None:
        for process in (*self.workers.values(), *self.servers.values()):
            if process.running:
                process.signal(signal.SIGCONT)
            process.kill()
        self._http.close()

    def logs(self) -> str:
        return "\n".join(
            f"== {p.name}\n{p.log.read_text()[-3000:]}" for p in (*self.servers.values(), *self.workers.values())
        )
