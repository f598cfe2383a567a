"""The processes of a peer: their environment, their output, and their end."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from tools.peers.environment import Environment
from tools.peers.leash import TiedProcess
from tools.peers.peer import FOLDER, Case, Peer, PeerError

DRIVE = FOLDER / "inside" / "drive.py"
PATIENCE = 120.0  # seconds for any one step
LOOK = 0.05


class Processes:
    """Programs of an environment, started in a temporary folder and ended together."""

    def __init__(self, peer: Peer, case: Case, environment: Environment, folder: Path, url: str) -> None:
        self._case, self._environment, self._folder, self._url = case, environment, folder, url
        self._environ = {
            "PATH": f"{environment.python.parent}:{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": f"{peer.folder}:{DRIVE.parent}",
            "HOME": str(folder),
            "PEERS_URL": url,
            "PEERS_TALLY": str(folder / "tally"),
            **case.environ,
        }
        self._started: list[TiedProcess] = []

    def drive(self, *arguments: object) -> dict[str, Any]:
        """Run `drive.py` to its end; return its result."""
        return self._told(self._start("drive", [self._environment.python, DRIVE, *map(str, arguments)]))

    def drain(self, count: int) -> dict[str, Any]:
        """Start the watcher, then the workers, and wait until the watcher has seen the end."""
        watcher = self._start("drive", [self._environment.python, DRIVE, "drain", str(count)])
        if not watcher.stdout or watcher.stdout.readline().strip() != "watching":
            raise self._error("drive")
        program, *arguments = (word.format(url=self._url) for word in self._case.worker)
        for _ in range(self._case.workers):
            self._start("worker", [self._environment.program(program), *arguments])
        return self._told(watcher)

    def _start(self, name: str, command: list[Any]) -> subprocess.Popen[str]:
        with (self._folder / f"{name}.log").open("a") as log:
            stdout = subprocess.PIPE if name == "drive" else log
            tied = TiedProcess(command, cwd=self._folder, env=self._environ, stdout=stdout, stderr=log)
        self._started.append(tied)
        return tied.process

    def _told(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        ends_at = time.monotonic() + PATIENCE
        while process.poll() is None:
            ended = [other for other in self._started if other.process is not process and other.process.poll()]
            if ended or time.monotonic() > ends_at:
                raise self._error("worker" if ended else "drive")
            time.sleep(LOOK)
        lines = process.stdout.read().splitlines() if process.stdout else []
        if process.returncode or not lines:
            raise self._error("drive")
        found: dict[str, Any] = json.loads(lines[-1])
        return found

    def _error(self, name: str) -> PeerError:
        """Return an error with the last output; the worker's output explains a drain that does not end."""
        texts = {each: self._last_words(each) for each in (name, "worker", "drive")}
        said = "; ".join(f"{each}: {text}" for each, text in texts.items() if text)
        return PeerError(f"failed or took more than {PATIENCE:g} s: {said or 'there was no output'}")

    def _last_words(self, name: str) -> str:
        log = self._folder / f"{name}.log"
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """End all started processes, with their children."""
        for tied in self._started:
            tied.end()
