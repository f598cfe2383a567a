"""Measurement in rounds: every system once per round, so that all see the same noise."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.peers.environment import Environment, installed
from tools.peers.peer import Case, Peer, PeerError
from tools.peers.processes import Processes
from tools.peers.services import SERVICES, Host

MEMORY = Path("/dev/shm")
HORAE_PATIENCE = 300.0  # seconds for one of Horae's own benches
HORAE_EXECUTIONS, HORAE_SINGLES = 100_000, 10_000


@dataclass(frozen=True, kw_only=True)
class Run:
    """The results of one measurement, in jobs per second."""

    drain: float
    drain_singles: float | None = None  # for systems whose speed depends on the kind of submission
    bulk: float | None = None
    single: float | None = None


@dataclass(kw_only=True)
class Subject:
    """One way to run one system, and its results."""

    system: str
    case: str
    store: str
    durability: str
    results: str
    settings: str
    version: str
    jobs: int
    clients: int
    measure: Callable[[Host], Run] = field(repr=False, compare=False)
    runs: list[Run] = field(default_factory=list)
    failure: str = ""

    @property
    def name(self) -> str:
        return f"{self.system} {self.case}"


def horae_subjects(version: str, share: float = 1.0) -> list[Subject]:
    """Return Horae itself, measured by its own bench, on both its stores."""
    return [_horae(store, title, durability, version, share) for store, title, durability in HORAE_STORES]


HORAE_STORES = (
    ("postgresql", "PostgreSQL", SERVICES["postgresql"].durability),
    ("sqlite", "SQLite", "write-ahead log, synchronous FULL: what is acknowledged is on disk"),
)


def _horae(store: str, title: str, durability: str, version: str, share: float) -> Subject:
    executions, singles = int(HORAE_EXECUTIONS * share), int(HORAE_SINGLES * share)

    def measure(host: Host) -> Run:
        with tempfile.TemporaryDirectory(prefix="horae-peers-") as folder:
            url = host.postgres.url() if store == "postgresql" else f"sqlite:///{folder}/horae.db"
            drained = _bench("throughput", url, "--executions", executions, "--singles", singles)
            submitted = _bench("submit", url, "--bulk", executions, "--singles", singles)
        return horae_run(store, {**drained, **submitted})

    return Subject(
        system="Horae", case=title, store=title, durability=durability, results="result stored", version=version,
        settings="`python -m bench throughput` and `python -m bench submit`: one server, one worker, HTTP between all",
        jobs=executions, clients=64, measure=measure,
    )  # fmt: skip


def _bench(name: str, url: str, *flags: object) -> dict[tuple[str, str], float]:
    """Run one of Horae's benches in a separate process, as a user does; return figures by case and metric."""
    command = [sys.executable, "-m", "bench", name, "--repeats", "1", "--store", url, "-o", "jsonl"]
    process = subprocess.Popen(
        [*command, *map(str, flags)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        shown, said = process.communicate(timeout=HORAE_PATIENCE)
    except subprocess.TimeoutExpired:
        raise PeerError(f"python -m bench {name} took more than {HORAE_PATIENCE:g} s") from None
    finally:
        if process.poll() is None:
            process.terminate()  # it ends its servers and workers itself
            process.communicate()
    if process.returncode:
        raise PeerError(f"python -m bench {name} failed: {said.strip()[-300:]}")
    lines: list[dict[str, Any]] = [json.loads(line) for line in shown.splitlines()]
    return {(line["case"], line["metric"]): line["value"] for line in lines}


def horae_run(store: str, found: dict[tuple[str, str], float]) -> Run:
    """Return Horae's figures under the names that all systems have here."""
    return Run(
        drain=found[f"{store} drain", "executions"],
        drain_singles=found.get((f"{store} parcels of one", "executions")),
        bulk=found.get((f"{store} SDK", "submissions"), found.get((f"{store} bulk", "submissions"))),
        single=found.get((f"{store} single", "submissions")),
    )


def peer_subjects(peer: Peer, share: float = 1.0) -> list[Subject]:
    """Return a peer in all its cases; if it cannot be installed, they contain the reason."""
    try:
        environment, failure = installed(peer.folder, peer.python), ""
    except PeerError as error:
        environment, failure = None, str(error)
    return [_peer(peer, case.part(share), environment, failure) for case in peer.cases]


def _peer(peer: Peer, case: Case, environment: Environment | None, failure: str) -> Subject:
    def measure(host: Host) -> Run:
        if environment is None:
            raise PeerError(failure)
        return measured(peer, case, environment, host)

    service = SERVICES[case.service]
    version = f"{peer.package} {peer.version}" + (f", Python {environment.version}" if environment else "")
    return Subject(
        system=peer.title, case=case.name, store=service.title, results=case.results, settings=case.settings,
        durability="; ".join(filter(None, (service.durability, peer.loses))), version=version,
        jobs=case.jobs, clients=case.clients, measure=measure, failure=failure,
    )  # fmt: skip


def measured(peer: Peer, case: Case, environment: Environment, host: Host) -> Run:
    """Submit all jobs to a fresh store without a worker, then start workers and measure them."""
    memory = MEMORY if MEMORY.is_dir() else None
    with (
        SERVICES[case.service].fresh(host) as url,
        tempfile.TemporaryDirectory(prefix="horae-peers-", dir=memory) as folder,
    ):
        processes = Processes(peer, case, environment, Path(folder), url)
        try:
            processes.drive("prepare")
            bulk = processes.drive("bulk", case.bulk)["seconds"] if case.bulk else None
            singles = processes.drive("singles", case.singles, case.clients)["seconds"]
            drained = processes.drain(case.jobs)
        finally:
            processes.end()
    return Run(
        drain=drained["jobs"] / drained["seconds"],
        bulk=case.bulk / bulk if bulk else None,
        single=case.singles / singles,
    )


def rounds(subjects: Sequence[Subject], repeats: int, host: Host) -> Iterator[tuple[int, Subject]]:
    """Measure all subjects in each round; yield the next one before its measurement.

    A failed one is omitted from then on.
    """
    for number in range(1, repeats + 1):
        for subject in subjects:
            if subject.failure:
                continue
            yield number, subject
            try:
                subject.runs.append(subject.measure(host))
            except PeerError as error:
                subject.failure = str(error)
