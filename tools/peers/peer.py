"""What a peer is: where its code lies, what it is installed from, and the ways in which it is measured."""

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
    results: str  # what is kept of a finished job
    settings: str  # what is not the peer's default
    worker: tuple[str, ...]  # a program of the environment and its arguments; {url} stands for the service's
    workers: int = 1  # how many of those are started
    bulk: int = 0  # jobs submitted by the peer's call for many; 0 where it has none
    singles: int  # jobs submitted each alone
    clients: int  # threads or tasks that do so, each waiting for one to be acknowledged before the next
    environ: Mapping[str, str] = field(default_factory=dict)  # tells `app.py` which case it is

    @property
    def jobs(self) -> int:
        return self.bulk + self.singles

    def part(self, share: float) -> "Case":
        """The same with fewer jobs."""
        return replace(self, bulk=int(self.bulk * share), singles=max(1, int(self.singles * share)))


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A system that does what Horae does, in its own folder beside this module."""

    name: str
    title: str
    package: str
    cases: tuple[Case, ...]
    loses: str = ""  # what may be lost by design, whatever the service keeps
    python: tuple[int, int] = (3, 11)  # the least that it runs on

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def version(self) -> str:
        return pins(self.folder)[self.package]


def pins(folder: Path) -> dict[str, str]:
    """What an environment holds, by name."""
    return dict(PIN.findall((folder / "requirements.txt").read_text()))


class PeerError(Exception):
    """What went wrong and what to do, in words for the report."""
