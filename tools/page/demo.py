"""A server with its demo, and a browser for it."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu"]
READY = "() => document.querySelector('main .page') && !document.querySelector('main .loading')"


class Demo:
    """A server with its demo on a free port."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url, self.folder = f"http://127.0.0.1:{port}", Path(folder)
        # The server runs from a copy, so that tracebacks in the pictures do not reveal the machine's paths.
        shutil.copytree(ROOT / "src/horae", self.folder / "horae", ignore=shutil.ignore_patterns("__pycache__"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self.process = self.run("up", "--demo", "--data", folder, "--port", str(port))

    def run(self, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a command of Horae beside the server."""
        process = subprocess.Popen(
            [sys.executable, "-m", "horae.cli.main", *arguments], cwd=self.folder,
            env={**os.environ, "PYTHONPATH": f"{self.folder}:{ROOT}", **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._processes.append(process)
        return process

    @property
    def key(self) -> str:
        return (self.folder / "admin.key").read_text().strip()

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def newest(self, job: str, *states: str) -> str | None:
        items = self.ask(f"/executions?job={job}&limit=50")["items"]
        return next((one["executionId"] for one in items if not states or one["status"] in states), None)

    async def lived(self) -> dict[str, str]:
        """Wait until the demo has content; return ids by name, for the addresses of views."""
        await until(lambda: self.ask("/workers")["items"])
        for _ in range(30):
            for job in ("demo-shop", "demo-flaky"):
                self.ask(f"/jobs/{job}/trigger", {})
        self.ask("/alert-rules", {"name": "dead", "kind": "failures-in-a-row", "count": 1})
        found = {
            "import": await until(lambda: self.newest("demo-import", "running", "success")),
            "fails": await until(lambda: self.newest("demo-fails", "failed")),
            "pipeline": await until(lambda: self.newest("demo-pipeline")),
            "worker": self.ask("/workers")["items"][0]["workerId"],
        }
        await until(lambda: len(self.ask("/executions?status=success&limit=100")["items"]) > 50)
        return found

    def close(self) -> None:
        """End all started processes, the latest first."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait()


async def until(check: Callable[[], Any]) -> Any:
    """Return the result of a check once it is not empty."""
    for _ in range(600):
        try:
            if found := check():
                return found
        except OSError:
            pass
        await asyncio.sleep(0.2)
    raise SystemExit("the demo did not start")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Open Debian's Chromium, as the tests do."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        await browser.close()


async def sign_in(page: Page, demo: Demo) -> None:
    """Sign a browser in with a link, as users do."""
    await page.goto(f"{demo.url}/#code={demo.ask('/sign-in/codes', {})['code']}")
    await page.wait_for_selector(".rail")
