"""Generation of docs/RESULTS-peers.md: drains, targets of Horae, submissions, and the settings of each system."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.kit.results import Result, about, figure, median
from tools.peers.rounds import Run, Subject

PAGE = """# Horae and its peers, side by side

Written by `{command}`, never by hand. All ran on one machine in one run, in turn, in rounds: {repeats}.
Medians count, `runs` are the single rounds.

- at {at}, commit {commit}
- {machine}
- {services}

A job is a Python function that returns its only parameter, `{{"i": n}}`. Jobs are submitted while no worker runs; then
workers start on all cores, and a **drain** is timed from the first job that runs to the last one that is finished, and
its result stored where results are, by the word of the store. Start-up is not in it. A peer's job also counts itself in
a file in memory, which takes it under a microsecond. All talk over loopback; PostgreSQL has its own defaults and is the
same server for all; each measurement begins with an empty store. Horae is measured by `python -m bench`, the peers by
their own workers with the settings below, each in a virtual environment of its own
([tools/peers](../tools/peers/__init__.py)).
"""
DRAINS = """## Drained jobs a second

Horae drains what was submitted in bulk and what was submitted one by one at different rates, since it moves jobs in
parcels; a peer has one entry a job either way. The last columns say how many times as fast Horae on PostgreSQL is.
"""
SUBMISSIONS = """## Submitted jobs a second

"In bulk" is the system's call for many jobs, a thousand at a time, if it has one. "One by one" is from one process with
so many clients (threads or tasks, whichever the peer is written for, and as many as serve it well), each of which waits
for its job to be acknowledged before it submits the next.
"""
SETTINGS = """## How each was run
"""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """The circumstances that all measurements of a run share."""

    command: str
    at: str
    commit: str
    machine: dict[str, Any]
    services: str
    share: float = 1.0  # of the jobs that a run should have; a small run is not compared with targets


@dataclass(frozen=True)
class SpeedTarget:
    """A target: the speed of Horae on PostgreSQL relative to some peers."""

    times: float
    than: str
    among: Callable[[Subject], bool]


ASKED = (
    SpeedTarget(100, "Celery with Redis (prefork, results stored)", lambda s: s.name == "Celery prefork, results"),
    SpeedTarget(15, "the fastest peer on Redis", lambda s: s.store == "Redis"),
    SpeedTarget(4, "the fastest peer on PostgreSQL", lambda s: s.store == "PostgreSQL"),
)


def page(subjects: Sequence[Subject], around: Circumstances) -> str:
    """Return the whole page."""
    repeats = max((len(subject.runs) for subject in subjects), default=0)
    head = PAGE.format(
        command=around.command, repeats=repeats, at=around.at, commit=around.commit, services=around.services,
        machine=about(around.machine),
    )  # fmt: skip
    parts = [
        head,
        DRAINS,
        _drains(subjects),
        "",
        _asked(subjects) if around.share >= 1 else "",
        SUBMISSIONS,
        _submissions(subjects),
        "",
        SETTINGS,
    ]
    return "\n".join([*parts, _settings(subjects), "", *_missing(subjects)])


def value(subject: Subject, metric: str) -> float | None:
    """Return the median of a figure, if there is one."""
    found = [each for each in (getattr(run, metric) for run in subject.runs) if each is not None]
    return median(found) if found else None


def horae(subjects: Iterable[Subject]) -> Subject | None:
    """Return the reference of all comparisons."""
    return next((s for s in subjects if s.name == "Horae PostgreSQL" and s.runs), None)


def ratio(subjects: Sequence[Subject], subject: Subject, metric: str = "drain") -> float | None:
    """Return the ratio of Horae's speed to that of a peer."""
    ours, theirs = horae(subjects), value(subject, "drain")
    reference = value(ours, metric) if ours else None
    return reference / theirs if reference and theirs else None


def _drains(subjects: Sequence[Subject]) -> str:
    rows = []
    for subject in sorted(_found(subjects), key=lambda s: -(value(s, "drain") or 0)):
        ratios = [_times(ratio(subjects, subject, metric)) for metric in ("drain", "drain_singles")]
        if subject.system == "Horae":
            rows.append(_drain_row(subject, f"{subject.case}, in bulk", "drain", ["", ""]))
            if value(subject, "drain_singles"):
                rows.append(_drain_row(subject, f"{subject.case}, one by one", "drain_singles", ["", ""]))
        else:
            rows.append(_drain_row(subject, subject.case, "drain", ratios))
    headings = ("system", "case", "store", "kept", "jobs a second", "runs", "Horae, in bulk", "Horae, one by one")
    return _table(headings, rows, numbers=(4,))


def _drain_row(subject: Subject, case: str, metric: str, ratios: list[str]) -> list[str]:
    runs = ", ".join(figure(getattr(run, metric)) for run in subject.runs)
    return [subject.system, case, subject.store, subject.results, _figure(value(subject, metric)), runs, *ratios]


def _asked(subjects: Sequence[Subject]) -> str:
    lines = []
    for asked in ASKED:
        peers = [s for s in _found(subjects) if s.system != "Horae" and asked.among(s)]
        found = [(each, peer) for peer in peers if (each := ratio(subjects, peer)) is not None]
        if not found:
            continue
        least, peer = min(found, key=lambda pair: pair[0])
        reached = "reached" if least >= asked.times else "**missed**"
        lines.append(f"- at least {figure(asked.times)} times {asked.than}: {_times(least)} ({peer.name}), {reached}")
    return "\n".join(["Asked of Horae on PostgreSQL, in bulk:", "", *lines, ""]) if lines else ""


def _submissions(subjects: Sequence[Subject]) -> str:
    rows = [
        [subject.system, subject.case, subject.store, _figure(value(subject, "bulk"), "none"),
         _figure(value(subject, "single")), str(subject.clients)]
        for subject in _found(subjects)
    ]  # fmt: skip
    return _table(("system", "case", "store", "in bulk", "one by one", "clients"), rows, numbers=(3, 4, 5))


def _settings(subjects: Sequence[Subject]) -> str:
    rows = [[s.system, s.case, s.version, f"{s.jobs:,}", s.settings, s.durability] for s in _found(subjects)]
    return _table(("system", "case", "version", "jobs a run", "settings", "durability"), rows, numbers=(3,))


def _missing(subjects: Sequence[Subject]) -> list[str]:
    failed = [f"- {subject.name}: {subject.failure}" for subject in subjects if subject.failure]
    return ["## What could not be measured", "", *failed, ""] if failed else []


def _found(subjects: Iterable[Subject]) -> list[Subject]:
    return [subject for subject in subjects if subject.runs]


def _times(ratio: float | None) -> str:
    return f"{ratio:.3g}x" if ratio is not None else ""


def _figure(value: float | None, otherwise: str = "") -> str:
    return figure(value) if value is not None else otherwise


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    rule = ["---:" if number in numbers else "---" for number in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def lines(subjects: Sequence[Subject], around: Circumstances) -> list[Result]:
    """Return every figure in the form of the benches' results."""
    found = []
    for subject in _found(subjects):
        settings = {
            "version": subject.version, "store": subject.store, "results": subject.results, "jobs": subject.jobs,
            "clients": subject.clients, "settings": subject.settings, "durability": subject.durability,
            "commit": around.commit, **around.machine,
        }  # fmt: skip
        for metric in Run.__dataclass_fields__:
            runs = [round(each, 1) for run in subject.runs if (each := getattr(run, metric)) is not None]
            if runs:
                found.append(
                    Result(bench="peers", case=subject.name, metric=metric, unit="1/s", value=round(median(runs), 1),
                           settings={**settings, "runs": runs})
                )  # fmt: skip
    return found
