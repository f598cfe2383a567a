"""The page that `make bench` writes, as a pure function of the results."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.kit.results import Result, about, circumstances, figure, judged, verdict
from bench.kit.targets import target_of
from bench.pages import plot

if TYPE_CHECKING:
    from bench.pages.document import Run

INTRODUCTION = """# Performance

Written by `make bench`, never by hand: each table is what one command printed, so any of them can be had for another
machine. Servers and workers are processes of their own that talk HTTP, commits are synced to disk, results are stored;
`runs` are the single runs whose median counts. Targets are for two cores; a figure of a run that was too small for its
target is "not tried": `make bench BENCH_FLAGS=--large` tries all, `BENCH_FLAGS="--only latency"` measures one anew.
"""
MICROSECOND = """## Where a microsecond goes

`python -m bench stages` runs an execution's life in one process, one stage after another, by the functions that server
and worker call, and divides each stage's wall time by the executions that it handled. A stage marked + is a
transaction, whose fixed part is "commit alone". What is paid per request, transaction or parcel vanishes when
executions travel together; what is paid per item does not. In use the stages overlap on several cores.
"""


def page(runs: "Sequence[Run]", folder: str, drawn: Mapping[str, str]) -> str:
    """Return the whole page."""
    results = [judged(result) for run in runs for result in run.results]
    sections = [_section(run, folder, drawn) for run in runs]
    return "\n".join([INTRODUCTION, *_measured_on(runs), _summary(results), *sections])


def _measured_on(runs: "Sequence[Run]") -> list[str]:
    commits = sorted({run.commit for run in runs})
    times = sorted(run.at for run in runs)
    shared = _machine(runs)
    if not runs:
        return []
    return [f"- from {times[0]} to {times[-1]}, commit {', '.join(commits)}", f"- {about(shared)}", ""]


def _machine(runs: "Sequence[Run]") -> dict[str, object]:
    first = runs[0].machine if runs else {}
    return {name: value for name, value in first.items() if name != "loadBefore"}


def _summary(results: Sequence[Result]) -> str:
    asked = [result for result in results if result.target]
    reached = sum(result.reached is True for result in asked)
    missed = sum(result.reached is False for result in asked)
    head = f"## Against the targets\n\n{reached} reached, {missed} missed, {len(asked) - reached - missed} not tried.\n"
    rows = ["| bench | case | figure | measured | target |", "|---|---|---|---:|---|"]
    rows += [
        f"| {r.bench} | {r.case} | {r.metric} | {figure(r.value)} {r.unit} | {_verdict(r)} |".replace("  ", " ")
        for r in asked
    ]
    return "\n".join([head, *rows, ""])


def _verdict(result: Result) -> str:
    return verdict(result).replace(": missed", ": **missed**")


def _section(run: "Run", folder: str, drawn: Mapping[str, str]) -> str:
    results = [judged(result) for result in run.results]
    if run.failure:
        return f"## `{run.command}`\n\nIt did not end well:\n\n```text\n{run.failure}\n```\n"
    bench = results[0].bench
    shown = [f"![{name}]({folder}/{name}.svg)\n" for name in drawn if _belongs(name, run, bench)]
    if bench == "stages":
        return "\n".join([MICROSECOND, *_layers(results), "", *shown, *_pivot(results), "", *_notes(results), ""])
    rows = ["| case | metric | value | unit | target | runs |", "|---|---|---:|---|---|---|", *map(_row, results)]
    return "\n".join([f"## `{run.command}`", "", *shown, *rows, "", *_notes(results), ""])


def _belongs(name: str, run: "Run", bench: str) -> bool:
    """Tell whether a picture belongs to a command: the first of its bench."""
    return name.partition("-")[0] == bench and "--kill" not in run.command and "--kind" not in run.command


def _notes(results: Sequence[Result]) -> list[str]:
    shared, own = circumstances(results)
    machine = ("cpu", "cores", "memoryGb", "system", "python", "horae")
    rest = about({name: value for name, value in shared.items() if name not in machine})
    return [*(f"- {', '.join(cases)}: {each}" for each, cases in own.items()), f"- {rest}"]


def _row(result: Result) -> str:
    runs = ", ".join(map(figure, result.settings.get("runs", ())))
    cells = (result.case, result.metric, figure(result.value), result.unit, _verdict(result), runs)
    return f"| {' | '.join(cells)} |"


def _pivot(results: Sequence[Result]) -> list[str]:
    """Return a table with a row per stage and a column per case."""
    cases = list(dict.fromkeys(result.case for result in results))
    stages = dict.fromkeys(result.metric for result in results)
    values = {(result.metric, result.case): figure(result.value) for result in results}
    rows = [f"| us/execution | {' | '.join(cases)} |", f"|---|{'---:|' * len(cases)}"]
    return rows + [f"| {s} | {' | '.join(values.get((s, case), '') for case in cases)} |" for s in stages]


def _layers(results: Sequence[Result]) -> list[str]:
    """Return the share of each layer in the total; a stage's name begins with its layer."""
    cases = list(dict.fromkeys(result.case for result in results))
    totals: dict[str, dict[str, float]] = {case: {} for case in cases}
    for result in results:
        if result.metric not in ("sum", "commit alone"):
            layer = result.metric.partition(":")[0].partition(",")[0]
            totals[result.case][layer] = totals[result.case].get(layer, 0.0) + result.value
    layers = dict.fromkeys(layer for each in totals.values() for layer in each)
    rows = [f"| layer | {' | '.join(cases)} |", f"|---|{'---:|' * len(cases)}"]
    return rows + [f"| {layer} | {' | '.join(_share(totals[case], layer) for case in cases)} |" for layer in layers]


def _share(each: Mapping[str, float], layer: str) -> str:
    value, whole = each.get(layer, 0.0), sum(each.values()) or 1.0
    return f"{figure(value)} us, {value / whole:.0%}"


def pictures(results: Sequence[Result]) -> dict[str, str]:
    """Return all pictures by name: the bench, and the kind of picture."""
    drawn: dict[str, str] = {}
    for bench in dict.fromkeys(result.bench for result in results):
        own = [judged(result) for result in results if result.bench == bench]
        asked = [_bar(result) for result in own if result.target]
        if asked:
            drawn[f"{bench}-targets"] = plot.bars(f"{bench}: measured against the targets", asked)
    return drawn | _distributions(results) | _curves(results) | _stages(results)


def _bar(result: Result) -> plot.Bar:
    target = target_of(result.bench, result.case, result.metric)
    assert target is not None
    sign = "≥" if target.is_least else "<"
    shown = f"{figure(result.value)} {result.unit} ({sign} {figure(target.bound)})"
    label = f"{result.case}, {result.metric}" if result.metric not in ("executions", "submissions") else result.case
    return plot.Bar(_shortened(label), result.value, target.bound, shown, result.reached)


def _shortened(label: str) -> str:
    return label.replace("postgresql", "PostgreSQL").replace("sqlite", "SQLite").replace("largest gap between ", "")


def _distributions(results: Sequence[Result]) -> dict[str, str]:
    series = {
        _shortened(r.case): r.points for r in results if r.bench == "latency" and r.points and "pick-up" in r.case
    }
    percent = {name: [(ms, share * 100) for ms, share in points] for name, points in series.items()}
    title = "latency: share of executions that began within so many milliseconds"
    return {"latency-distribution": plot.lines(title, percent, "ms", "%", log_x=True)} if series else {}


def _curves(results: Sequence[Result]) -> dict[str, str]:
    drawn = {}
    for kind in ("history", "queued"):
        grown = [r for r in results if r.bench == "growth" and r.points and r.case.endswith(kind)]
        if grown:
            series = {_shortened(r.case): r.points for r in grown}
            title = f"growth: executions a second by what is {'in history' if kind == 'history' else 'queued'}"
            drawn[f"growth-{kind}"] = plot.lines(title, series, f"executions {kind}", "executions/s")
    return drawn


def _stages(results: Sequence[Result]) -> dict[str, str]:
    drawn: dict[str, str] = {}
    cases = dict.fromkeys(r.case for r in results if r.bench == "stages" and "a parcel of" in r.case)
    for case in cases:
        rows = {r.metric: r.value for r in results if r.bench == "stages" and r.case == case and r.metric != "sum"}
        title = f"{_shortened(case)}: microseconds an execution, by stage"
        drawn[f"stages-{case.partition(' ')[0]}"] = plot.stacks(title, "us", rows)
    return drawn
