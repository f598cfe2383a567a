"""Generation of docs/PERFORMANCE.md: `make bench`, that is `python -m bench.pages.document FILE`, runs all benches.

The output of each command is stored as JSON lines beside the page, so that `--only NAME` measures one bench again and
keeps the rest. The page and its pictures are generated from those lines only.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.kit.results import Result, machine
from bench.pages.page import page, pictures
from horae.env import system_env
from horae.model.base.instant import format_instant

RUNS: tuple[tuple[str, ...], ...] = (
    ("throughput",),
    ("submit",),
    ("latency",),
    ("reads",),
    ("api",),
    ("sessions",),
    ("sessions", "--sessions", "3000", "--servers", "3", "--kill"),
    ("concurrency",),
    ("concurrency", "--kind", "command"),
    ("sustain",),
    ("growth",),
    ("policies",),
    ("claims",),
    ("timers", "--store", "sqlite://"),
    ("timers", "--store", "postgresql://"),
    ("workflows",),
    ("logs",),
    ("events",),
    ("disk",),
    ("start",),
    ("idle",),
    ("stages",),
)
LARGE: dict[tuple[str, ...], tuple[str, ...]] = {
    ("growth",): ("--history", "10000000", "--queued", "5000000"),
    ("claims",): ("--queued", "5000000"),
    ("reads",): ("--history", "10000000"),
    ("api",): ("--jobs", "100000", "--history", "10000000"),
    ("timers", "--store", "postgresql://"): ("--triggers", "10000000"),
}


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output of one command, with time and commit, or the reason of its failure."""

    command: str
    at: str
    commit: str
    machine: dict[str, object]
    results: list[Result] = []
    failure: str = ""

    @property
    def bench(self) -> str:
        """The name in `python -m bench NAME`."""
        return self.command.split()[3]


def measure(arguments: Sequence[str]) -> Run:
    """Run a bench in a separate process, as a user does."""
    at, commit = format_instant(system_env().now()), commit_of_tree()
    program = [sys.executable, "-m", "bench"]
    done = subprocess.run([*program, *arguments, "-o", "jsonl"], check=False, capture_output=True, text=True)
    results = [msgspec.json.decode(line, type=Result) for line in done.stdout.splitlines()]
    failure = (done.stderr.strip()[-500:] or f"exit code {done.returncode}") if done.returncode else ""
    command = " ".join(("python", "-m", "bench", *arguments))
    return Run(command=command, at=at, commit=commit, machine=machine(), results=results, failure=failure)


def commit_of_tree() -> str:
    """Return the measured commit; a tree with changes is marked."""
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return shown.stdout.strip()


def stored_runs(file: Path) -> list[Run]:
    """Return the stored runs."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Run) for line in lines]


def write(file: Path, runs: Sequence[Run]) -> None:
    """Write the page, its pictures, and the runs."""
    folder = file.parent / file.stem.lower()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(run) + b"\n" for run in runs))
    drawn = pictures([result for run in runs for result in run.results])
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text)
    file.write_text(page(runs, folder.name, drawn))


def chosen(only: Sequence[str], large: bool) -> Iterable[tuple[str, ...]]:
    """Yield the commands to run."""
    for run in RUNS:
        if not only or run[0] in only:
            yield (*run, *LARGE.get(run, ())) if large else run


def main(arguments: Sequence[str]) -> int:
    """Measure and write the page; failures are shown on the page, and by the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages.document", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--large", action="store_true", help="use stores as large as the targets require")
    parser.add_argument("--only", action="append", default=[], help="measure only this bench again; repeatable")
    options = parser.parse_args(arguments)
    before = stored_runs(options.file.parent / options.file.stem.lower() / "results.jsonl") if options.only else []
    runs = [run for run in before if run.bench not in options.only]
    for command in chosen(options.only, options.large):
        sys.stderr.write(f"{format_instant(system_env().now())} python -m bench {' '.join(command)}\n")
        runs.append(measure(command))
        write(options.file, _in_order(runs))
    return 1 if any(run.failure for run in runs) else 0


def _in_order(runs: Sequence[Run]) -> list[Run]:
    places = {name: place for place, (name, *_) in reversed(list(enumerate(RUNS)))}
    return sorted(runs, key=lambda run: places.get(run.bench, len(places)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
