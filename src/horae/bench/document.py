"""Writes docs/RESULTS-bench.md: `make bench`, that is `python -m horae.bench.document FILE`, runs all benches."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from horae.bench import BENCHES
from horae.bench.results import Result, about, circumstances, figure, machine
from horae.env import Instant, system_env
from horae.model.instant import format_instant

INTRODUCTION = """# What was measured

Written by `{command}`, never by hand. Each table is what one command printed; `runs` are the single runs whose median
counts. Servers and workers are processes of their own that talk HTTP, commits are synced to disk, results are stored.

- at {at}, commit {commit}
- {machine}
"""
# What Horae asks of itself on two cores: (bench, case, metric) -> the bound, and whether it is a least value.
TARGETS: dict[tuple[str, str, str], tuple[float, bool]] = {
    ("throughput", "sqlite whole life", "executions"): (30_000, True),
    ("throughput", "postgresql whole life", "executions"): (30_000, True),
    ("latency", "sqlite pick-up", "p50"): (10, False),
    ("latency", "sqlite pick-up", "p99"): (50, False),
    ("latency", "postgresql pick-up", "p50"): (10, False),
    ("latency", "postgresql pick-up", "p99"): (50, False),
    ("growth", "sqlite ratio", "ratio"): (0.8, True),
    ("growth", "postgresql ratio", "ratio"): (0.8, True),
    ("idle", "horae up", "processor"): (1, False),
    ("idle", "horae up", "memory"): (150, False),
    ("concurrency", "sqlite held", "worker memory"): (300, False),
}


def document(command: str, at: Instant, commit: str, benches: Sequence[tuple[str, Sequence[Result]]]) -> str:
    """The whole page."""
    shared = {name: value for name, value in machine().items() if name != "loadBefore"}
    head = INTRODUCTION.format(command=command, at=format_instant(at), commit=commit, machine=about(shared))
    return "\n".join([head, *(_section(line, results, shared) for line, results in benches)])


def _section(line: str, results: Sequence[Result], machine: dict[str, object]) -> str:
    rows = ["| case | metric | value | unit | target | runs |", "|---|---|---:|---|---|---|", *map(_row, results)]
    shared, own = circumstances(results)
    rest = about({name: value for name, value in shared.items() if name not in machine})
    notes = [*(f"- {', '.join(cases)}: {each}" for each, cases in own.items()), f"- {rest}"]
    return "\n".join([f"## `{line}`", "", *rows, "", *notes, ""])


def _row(result: Result) -> str:
    runs = ", ".join(map(figure, result.settings.get("runs", ())))
    cells = (result.case, result.metric, figure(result.value), result.unit, target(result), runs)
    return f"| {' | '.join(cells)} |"


def target(result: Result) -> str:
    """What is asked for, and whether it was reached."""
    found = TARGETS.get((result.bench, result.case, result.metric))
    if found is None:
        return ""
    bound, is_least = found
    reached = result.value >= bound if is_least else result.value < bound
    return f"{'at least' if is_least else 'under'} {figure(bound)}: {'reached' if reached else '**missed**'}"


def measure(name: str, *flags: str) -> list[Result]:
    """Run a bench in a process of its own, as a user does."""
    command = [sys.executable, "-m", "horae.cli.main", "bench", name, *flags, "-o", "jsonl"]
    shown = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [msgspec.json.decode(line, type=Result) for line in shown.splitlines()]


def commit_of_tree() -> str:
    """Which commit was measured; a tree with changes says so."""
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return shown.stdout.strip()


def main(file: str) -> None:
    """Measure everything and write it down."""
    at, commit = system_env().now(), commit_of_tree()
    benches = [(f"horae bench {name}", measure(name)) for name in BENCHES]
    Path(file).write_text(document("make bench", at, commit, benches))


if __name__ == "__main__":
    main(sys.argv[1])
