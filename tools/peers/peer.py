"""The description of a peer: its code, its environment, and the cases in which it is measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

FOLDER = Path(__file__).parent
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to run a peer. Its jobs are submitted without a worker, then drained by a fresh one."""

    name: str
    service: str  # a key of services.SERVICES
    results: str  # the stored data of a finished job
    settings: str  # settings that differ from the peer's defaults
    worker: tuple[str, ...]  # a program of the environment and its arguments; {url} stands for the service's
    workers: int = 1  # the number of workers to start
    bulk: int = 0  # jobs submitted in bulk; 0 if the peer has no bulk call
    singles: int  # jobs submitted one by one
    clients: int  # threads or tasks that submit them, each waiting for one to be acknowledged before the next
    environ: Mapping[str, str] = field(default_factory=dict)  # selects the case in `app.py`

    @property
    def jobs(self) -> int:
        return self.bulk + self.singles

    def part(self, share: float) -> "Case":
        """Return the same case with fewer jobs."""
        return replace(self, bulk=int(self.bulk * share), singles=max(1, int(self.singles * share)))


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A system with the purpose of Horae, in its own folder beside this module."""

    name: str
    title: str
    package: str
    cases: tuple[Case, ...]
    loses: str = ""  # jobs that may be lost by design, whatever the service stores
    python: tuple[int, int] = (3, 11)  # the oldest version that it runs on

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def version(self) -> str:
        return pins(self.folder)[self.package]


def pins(folder: Path) -> dict[str, str]:
    """Return the pinned packages of an environment, by name."""
    return dict(PIN.findall((folder / "requirements.txt").read_text()))


class PeerError(Exception):
    """A failure with its remedy, as a text for the report."""
