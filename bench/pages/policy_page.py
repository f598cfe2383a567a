"""Generation of docs/RESULTS-policies.md: `make bench-policies`, that is `python -m bench.pages.policy_page FILE`.

It runs `python -m bench policies` and `python -m bench claims` and shows their output, nothing else. The output is
stored as JSON lines beside the page, so that `--only claims` measures one bench again and keeps the other.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.kit.results import Result, about, figure, judged, verdict
from bench.pages.document import Run, measure, stored_runs

INTRODUCTION = """# Policies: who waits, and what it costs

Written by `make bench-policies`, never by hand. Trials run the server's own submissions, claims and reports on a
virtual clock over a store in memory, with a worker whose executions only take time: they come out the same on every
machine. Rates are of this machine. Each policy is run right beside plain fifo, a limit by key beside plain fifo with
parcels of the same size, and a ratio is the median of such pairs; that of claims is to the first size. What each policy
means is in [queues.md](queues.md), what limits do in [limits.md](limits.md).
"""
TRIALS = "## Who waits\n\n| trial | figure | value | asked | with |\n|---|---|---:|---|---|"
RATES = (
    "\n## What it costs\n\n| store and policy | executions a second | ratio to fifo | asked | server, us an execution |"
    "\n|---|---:|---:|---|---:|"
)
CLAIMS = "\n## Claims\n\n| store and size | claimed and reported a second | ratio | asked |\n|---|---:|---:|---|"


def page(runs: Sequence[Run]) -> str:
    """Return the page for the output of the commands."""
    results = [judged(result) for run in runs for result in run.results]
    head = [f"- `{run.command}`: {run.at}, commit {run.commit}" for run in runs]
    head += [f"- `{run.command}` did not end well: {run.failure}" for run in runs if run.failure]
    head.append(f"- {about(runs[0].machine)}\n")
    policies = [result for result in results if result.bench == "policies"]
    trials = [result for result in policies if "about" in result.settings]
    rates = [result for result in policies if "about" not in result.settings]
    claims = [result for result in results if result.bench == "claims"]
    parts = [INTRODUCTION, *head, TRIALS, *map(_trial, trials), RATES, *_side_by_side(rates, "executions")]
    parts += [_settings(rates), CLAIMS, *_side_by_side(claims, "executions claimed and reported"), _settings(claims)]
    return "\n".join(parts) + "\n"


def _trial(result: Result) -> str:
    value = f"{result.value:.4f}" if result.metric == "Jain index" else f"{figure(result.value)} {result.unit}".strip()
    return f"| {result.case} | {result.metric} | {value} | {_asked(result)} | {result.settings['about']} |"


def _side_by_side(results: Sequence[Result], metric: str) -> list[str]:
    """Return rows with a rate and its ratio."""
    ratios = {result.case: result for result in results if result.metric.startswith("ratio")}
    used = {result.case: result for result in results if result.metric == "server processor"}
    rows = []
    for result in results:
        if result.metric == metric:
            ratio = ratios.get(result.case)
            shown = "1" if ratio is None else f"{ratio.value:.2f}"
            row = f"| {result.case} | {result.value:,.0f} | {shown} | {_asked(ratio) if ratio else ''} |"
            rows.append(row + (f" {used[result.case].value:.1f} |" if result.case in used else ""))
    return rows


def _asked(result: Result) -> str:
    return verdict(result).replace(": missed", ": **missed**")


def _settings(results: Sequence[Result]) -> str:
    """Return the settings that all results share."""
    if not results:
        return "\nNothing was measured.\n"
    first = results[0].settings
    common = {
        name: value
        for name, value in first.items()
        if name
        in (
            "executions",
            "tenants",
            "perRequest",
            "parcel",
            "deep_parcel",
            "free",
            "concurrency",
            "repeats",
            "loadBefore",
        )
    }
    return f"\n{about(common)}"


def main(arguments: Sequence[str]) -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages.policy_page", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--repeats", default="3", help="the number of measurements of each")
    parser.add_argument("--only", choices=("policies", "claims"), help="measure this one again, and keep the other")
    options = parser.parse_args(arguments)
    often = ("--repeats", options.repeats)
    commands = {"policies": ("policies", *often), "claims": ("claims", *often)}
    lines = options.file.parent / "policies" / "results.jsonl"
    before = {run.bench: run for run in stored_runs(lines)}
    again = [options.only] if options.only else list(commands)
    runs = {**before, **{name: measure(commands[name]) for name in again}}
    ordered = [runs[name] for name in commands if name in runs]
    lines.parent.mkdir(parents=True, exist_ok=True)
    lines.write_bytes(b"".join(msgspec.json.encode(run) + b"\n" for run in ordered))
    options.file.write_text(page(ordered))
    return 1 if any(run.failure for run in ordered) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
