"""What a bench found, and how it is printed: a table for people, JSON or one JSON line a result for programs."""

import os
import platform
from collections.abc import Sequence
from math import ceil
from typing import Any, Literal

import click
import msgspec
from msgspec import Struct, structs

from bench.kit.targets import Target, target_of
from horae.version import __version__

Format = Literal["table", "json", "jsonl"]
LOAD_BEFORE = round(os.getloadavg()[0], 2)  # what else the machine does: this is imported before anything is started


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure. `case` says of what, `settings` under which circumstances."""

    bench: str
    case: str
    metric: str
    value: float
    unit: str
    settings: dict[str, Any]
    points: list[tuple[float, float]] = []  # what a plot of it shows: a distribution, or how it grows
    target: str = ""
    reached: bool | None = None  # None: nothing is asked, or the run was too small to tell


def measured(bench: str, case: str, metric: str, unit: str, runs: Sequence[float], settings: dict[str, Any]) -> Result:
    """The median of several runs."""
    own = {**settings, "runs": [round(run, 2) for run in runs]} if len(runs) > 1 else settings
    return Result(bench=bench, case=case, metric=metric, unit=unit, value=round(median(runs), 3), settings=own)


def judged(result: Result) -> Result:
    """A figure beside what is asked of it."""
    target = target_of(result.bench, result.case, result.metric)
    if target is None:
        return result
    reached = target.reached(result.value) if target.tried(result.settings) else None
    return structs.replace(result, target=_asked(target), reached=reached)


def _asked(target: Target) -> str:
    size = ", ".join(f"{name} {least:,}" for name, least in target.size.items())
    return f"{'at least' if target.is_least else 'under'} {figure(target.bound)}{f' at {size}' if size else ''}"


def verdict(result: Result) -> str:
    """What is asked for, and whether it was reached."""
    if not result.target:
        return ""
    said = {True: "reached", False: "missed", None: "not tried"}
    return f"{result.target}: {said[result.reached]}"


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share) - 1)]


def machine() -> dict[str, Any]:
    """What it was measured on."""
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memoryGb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "horae": __version__,
        "loadBefore": LOAD_BEFORE,
        **_precedence(),
    }


def _precedence() -> dict[str, str]:
    """Whether the bench, and so all that it starts, was put before other processes of the machine."""
    names = {getattr(os, name, -1): name for name in ("SCHED_FIFO", "SCHED_RR")}
    scheduler = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
    return {"scheduling": names[scheduler]} if scheduler in names else {}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(results: Sequence[Result], format: Format) -> None:
    """Print what was found."""
    results = list(map(judged, results))
    if format == "jsonl":
        for result in results:
            click.echo(msgspec.json.encode(result).decode())
    elif format == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(results), indent=2).decode())
    elif results:
        _table(results)


def _table(results: Sequence[Result]) -> None:
    from rich.table import Table

    from horae.cli.output import show as show_table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("CASE", "METRIC"):
        table.add_column(heading)
    for heading in ("VALUE", "UNIT"):
        table.add_column(heading, justify="right" if heading == "VALUE" else "left")
    for heading in ("TARGET", "RUNS"):
        table.add_column(heading)
    for result in results:
        runs = ", ".join(map(figure, result.settings.get("runs", ())))
        table.add_row(result.case, result.metric, figure(result.value), result.unit, verdict(result), runs)
    show_table(table)
    shared, own = circumstances(results)
    lines = [*(f"{', '.join(cases)}: {line}" for line, cases in own.items()), about(shared)]
    click.echo("\n" + "\n".join(lines))


def circumstances(results: Sequence[Result]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The settings that all results share; and what only some cases have, in a line, with those cases."""
    first = results[0].settings
    shared = {name: value for name, value in first.items() if all(r.settings.get(name) == value for r in results)}
    own: dict[str, list[str]] = {}
    for case, settings in {result.case: result.settings for result in results}.items():
        line = about({name: value for name, value in settings.items() if name not in shared})
        own.setdefault(line, []).append(case)
    return shared, {line: cases for line, cases in own.items() if line}


def about(settings: dict[str, Any]) -> str:
    """Settings in a line; single runs stand in the table."""
    return ", ".join(f"{name} {value}" for name, value in settings.items() if name != "runs")


def figure(value: float) -> str:
    """A number as people read it: three digits that count, or all of a large one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
