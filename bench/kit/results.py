"""The results of a bench and their output: a table for people, JSON or one JSON line per result for programs."""

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
LOAD_BEFORE = round(os.getloadavg()[0], 2)  # the load of other processes: this is imported before any process starts


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure of a case, with the settings of the measurement."""

    bench: str
    case: str
    metric: str
    value: float
    unit: str
    settings: dict[str, Any]
    points: list[tuple[float, float]] = []  # the points of a plot: a distribution, or growth
    target: str = ""
    reached: bool | None = None  # None: there is no target, or the run was too small


def measured(bench: str, case: str, metric: str, unit: str, runs: Sequence[float], settings: dict[str, Any]) -> Result:
    """Return the median of several runs as a result."""
    own = {**settings, "runs": [round(run, 2) for run in runs]} if len(runs) > 1 else settings
    return Result(bench=bench, case=case, metric=metric, unit=unit, value=round(median(runs), 3), settings=own)


def judged(result: Result) -> Result:
    """Return a result with its target."""
    target = target_of(result.bench, result.case, result.metric)
    if target is None:
        return result
    reached = target.reached(result.value) if target.tried(result.settings) else None
    return structs.replace(result, target=_asked(target), reached=reached)


def _asked(target: Target) -> str:
    size = ", ".join(f"{name} {least:,}" for name, least in target.size.items())
    return f"{'at least' if target.is_least else 'under'} {figure(target.bound)}{f' at {size}' if size else ''}"


def verdict(result: Result) -> str:
    """Return the target and whether it was reached, as text."""
    if not result.target:
        return ""
    said = {True: "reached", False: "missed", None: "not tried"}
    return f"{result.target}: {said[result.reached]}"


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share) - 1)]


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement."""
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
    """Return the real-time scheduling of the bench, which its processes inherit, if it is set."""
    names = {getattr(os, name, -1): name for name in ("SCHED_FIFO", "SCHED_RR")}
    scheduler = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
    return {"scheduling": names[scheduler]} if scheduler in names else {}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(results: Sequence[Result], output: Format) -> None:
    """Print results."""
    results = list(map(judged, results))
    if output == "jsonl":
        for result in results:
            click.echo(msgspec.json.encode(result).decode())
    elif output == "json":
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
    """Return the settings that all results share, and lines with other settings, each with its cases."""
    first = results[0].settings
    shared = {name: value for name, value in first.items() if all(r.settings.get(name) == value for r in results)}
    own: dict[str, list[str]] = {}
    for case, settings in {result.case: result.settings for result in results}.items():
        line = about({name: value for name, value in settings.items() if name not in shared})
        own.setdefault(line, []).append(case)
    return shared, {line: cases for line, cases in own.items() if line}


def about(settings: dict[str, Any]) -> str:
    """Return settings in one line; single runs are in the table."""
    return ", ".join(f"{name} {value}" for name, value in settings.items() if name != "runs")


def figure(value: float) -> str:
    """Return a number as text: three significant digits, or all digits of a large one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
