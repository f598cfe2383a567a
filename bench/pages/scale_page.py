"""The page that `make scale` writes, as a pure function of the results."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bench.kit.results import Result, about, figure
from bench.pages import plot, scale_text
from bench.pages.sizing import DAY, LOADED, Cost, bytes_kept, cores, database_limit, fires, needs, shown_bytes

if TYPE_CHECKING:
    from bench.pages.document import Run

Parts = Mapping[str, "Sequence[Run]"]
GOAL = 100_000
A_DAY, KEPT = (1_000_000, 100_000_000), (7, 30, 90)
PAYLOADS = (100, 1024)  # bytes of params and result together
RATES = (1_160, 10_000, 100_000, 1_000_000)
DATABASES = (2, 8, 32)  # cores
SCHEDULES, EVERY = (1_000_000, 10_000_000, 50_000_000), ((86_400, "a day"), (3600, "an hour"), (60, "a minute"))
KINDS = {"sustained": "a thousand in a request", "singles": "one in a request, 64 clients"}


class Case(Struct, frozen=True):
    """The results of one run on one store."""

    store: str
    settings: dict[str, Any]
    values: dict[str, float]
    points: dict[str, list[tuple[float, float]]]

    @property
    def cost(self) -> Cost:
        """The cost of a store in a separate process; SQLite is part of the server."""
        used = {who: self.values.get(f"{who} processor", 0.0) for who in ("server", "worker", "database")}
        return Cost(**used)

    @property
    def busy(self) -> float:
        """The cores that all parts and the bench used."""
        return sum(cores(self.values["executions"], v) for name, v in self.values.items() if name.endswith("processor"))


def cases(runs: "Sequence[Run]") -> list[Case]:
    """Return every run's results, by store."""
    found: list[Case] = []
    for run in runs:
        for case in dict.fromkeys(result.case for result in run.results):
            own = [result for result in run.results if result.case == case]
            found.append(Case(case.partition(" ")[0], own[0].settings, _values(own), {r.metric: r.points for r in own}))
    return found


def _values(results: Sequence[Result]) -> dict[str, float]:
    return {result.metric: result.value for result in results}


def page(parts: Parts, folder: str, drawn: Mapping[str, str]) -> str:
    """Return the whole page; it marks parts that were not measured."""
    sections = (
        _sustained(parts, folder, drawn), _soak(parts, folder, drawn), _storage(parts), _fleets(parts),
        _arithmetic(parts), scale_text.CELLS,
    )  # fmt: skip
    return "\n".join([_title(parts), "", scale_text.INTRODUCTION, *_measured_on(parts), *sections]).rstrip() + "\n"


def _title(parts: Parts) -> str:
    best = max(cases(parts["sustained"]), key=lambda case: case.values["executions"], default=None)
    if best is None:
        return "# Scale: no sustained run yet"
    rate, seconds = best.values["executions"], best.settings["seconds"]
    verdict = f"{GOAL:,}/s or more" if rate >= GOAL else f"short of {GOAL:,}/s"
    on = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(best.store, best.store)
    where = f"on {on} and {best.settings['cores']} cores"
    return f"# Scale: {figure(rate)} executions a second for {seconds} s {where}: {verdict}"


def _measured_on(parts: Parts) -> list[str]:
    runs = [run for each in parts.values() for run in each]
    if not runs:
        return []
    times, commits = sorted(run.at for run in runs), sorted({run.commit for run in runs})
    machine = about({name: value for name, value in runs[0].machine.items() if name != "loadBefore"})
    failed = [f"- **failed:** `{run.command}`: {run.failure.splitlines()[-1]}" for run in runs if run.failure]
    return [f"- from {times[0]} to {times[-1]}, commit {', '.join(commits)}", f"- {machine}", *failed, ""]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = "|".join("---" if i == 0 else "---:" for i in range(len(headings)))
    return "\n".join([f"| {' | '.join(headings)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows), ""])


def _shown(folder: str, drawn: Mapping[str, str], prefix: str) -> list[str]:
    return [f"![{name}]({folder}/{name}.svg)\n" for name in drawn if name.startswith(prefix)]


def _unmeasured(part: str) -> str:
    return f'Not measured yet: `make scale SCALE_FLAGS="--only {part}"`.\n'


def _sustained(parts: Parts, folder: str, drawn: Mapping[str, str]) -> str:
    rows = [
        [
            case.store, f"{case.settings['seconds']} s", figure(case.values["executions"]),
            figure(case.values["steadiness of the rate"]), figure(case.values["largest queue"]), *_memory(case),
        ]
        for case in cases(parts["sustained"])
    ]  # fmt: skip
    headings = ["store", "length", "executions/s", "last fifth / first", "largest queue", *MEMORY]
    told = [_table(headings, rows)] if rows else [_unmeasured("sustained")]
    return "\n".join([scale_text.SUSTAINED, *_shown(folder, drawn, "sustained"), *told])


MEMORY = ("server MiB after a fifth / at the end", "worker MiB after a fifth / at the end")


def _memory(case: Case) -> list[str]:
    return [
        f"{figure(case.values[f'{who} memory after a fifth'])} / {figure(case.values[f'{who} memory'])}"
        for who in ("server", "worker")
    ]


def _soak(parts: Parts, folder: str, drawn: Mapping[str, str]) -> str:
    found = cases(parts["soak"])
    rows = [
        [
            case.store, f"{case.settings['seconds']} s", figure(case.values["executions"]),
            *(figure(case.values[f"pick-up p{share}"]) for share in (50, 99)),
            ", ".join(figure(p99) for _, p99 in case.points["pick-up p99"]),
            figure(case.values["steadiness of the pick-up's p50"]), *_memory(case),
        ]
        for case in found
    ]  # fmt: skip
    headings = ["store", "length", "executions/s", "pick-up p50 ms", "p99 ms", "p99 by fifth, ms", "p50: last / first"]
    told = [_table([*headings, *MEMORY], rows)] if rows else [_unmeasured("soak")]
    short = [f"**This run was {case.settings['seconds']} s long, not an hour.**\n" for case in found[:1]
             if case.settings["seconds"] < 3600]  # fmt: skip
    return "\n".join([scale_text.SOAK, *short, *_shown(folder, drawn, "soak"), *told])


def _storage(parts: Parts) -> str:
    overhead = {
        (store, of): result.value
        for run in parts["disk"] for result in run.results if result.metric == "overhead"
        for store, _, of in [result.case.partition(" ")]
    }  # fmt: skip
    if not overhead:
        return f"{scale_text.STORAGE}\n{_unmeasured('disk')}"
    sizes = (*overhead.values(), *PAYLOADS)
    each = [[f"{store}, {of}", figure(value)] for (store, of), value in overhead.items()]
    rows = [
        [f"{a_day:,}", f"{days}", *(shown_bytes(bytes_kept(a_day, days, size)) for size in sizes)]
        for a_day in A_DAY for days in KEPT
    ]  # fmt: skip
    headings = ["a day", "days kept", *(f"{store}, {of}" for store, of in overhead)]
    headings += [f"plus, with {size:,} bytes of payload each" for size in PAYLOADS]
    return "\n".join([scale_text.STORAGE, _table(["", "bytes an execution"], each), _table(headings, rows)])


def _fleets(parts: Parts) -> str:
    found = [case for case in cases(parts["fleets"]) if case.store == "postgresql"]
    if not found:
        return f"{scale_text.FLEETS}\n{_unmeasured('fleets')}"
    first = found[0].values["executions"]
    rows = [
        [
            f"{case.settings['servers']} and {case.settings['workers']}", figure(case.values["executions"]),
            f"{case.values['executions'] / first:.0%}", *map(figure, _costs(case)), figure(case.busy),
            f"{cores(case.values['executions'], case.cost.database) / case.busy:.0%}",
        ]
        for case in found
    ]  # fmt: skip
    headings = ["servers and workers", "executions/s", "of one and one", "server us", "worker us", "database us"]
    return "\n".join([scale_text.FLEETS, _table([*headings, "cores busy", "of them the database"], rows)])


def _costs(case: Case) -> tuple[float, float, float]:
    return case.cost.server, case.cost.worker, case.cost.database


def _costly(parts: Parts) -> dict[str, Case]:
    """Return the measurements on PostgreSQL, by the kind of submission."""
    found = {part: [case for case in cases(parts[part]) if case.cost.database] for part in KINDS}
    return {part: each[0] for part, each in found.items() if each}


def _arithmetic(parts: Parts) -> str:
    costly = _costly(parts)
    if len(costly) < len(KINDS):
        return f"{scale_text.ARITHMETIC}\n{_unmeasured(next(part for part in KINDS if part not in costly))}"
    costs = [
        [KINDS[part], figure(case.values["executions"]), *map(figure, _costs(case))] for part, case in costly.items()
    ]
    rates = [
        [f"{rate:,}", f"{rate * DAY / 1e6:,.0f}M", KINDS[part], *_needed(rate, case.cost)]
        for rate in RATES for part, case in costly.items()
    ]  # fmt: skip
    limits = [
        [f"{count}", *(f"{database_limit(count, case.cost):,.0f}" for case in costly.values())] for count in DATABASES
    ]
    single = costly["singles"].cost
    schedules = [
        [f"{count:,}", f"once {word}", f"{fires(count, every):,.0f}", *_needed(fires(count, every), single)]
        for count in SCHEDULES for every, word in EVERY
    ]  # fmt: skip
    needed = ["server processes", "worker processes", "database cores"]
    return "\n".join(
        [
            scale_text.ARITHMETIC,
            _table(["submitted", "executions/s here", "server us", "worker us", "database us"], costs),
            scale_text.NEEDS.format(loaded=f"{LOADED:.0%}"),
            _table(["executions/s", "a day", "submitted", *needed], rates),
            scale_text.LIMIT,
            _table(["database cores", *(f"executions/s, {KINDS[part]}" for part in costly)], limits),
            scale_text.SCHEDULES,
            _table(["schedules", "each fires", "fires/s", *needed], schedules),
        ]
    )


def _needed(rate: float, cost: Cost) -> list[str]:
    found = needs(rate, cost)
    return [f"{found.servers:,}", f"{found.workers:,}", f"{found.database:,}"]


def pictures(parts: Parts) -> dict[str, str]:
    """Return all pictures by name."""
    drawn: dict[str, str] = {}
    for part in ("sustained", "soak"):
        found = [case for case in cases(parts[part]) if len(case.points["executions"]) > 1]
        if not found:
            continue
        rates = {case.store: case.points["executions"] for case in found}
        drawn[f"{part}-rate"] = plot.lines(f"{part}: executions a second", rates, "seconds", "executions/s")
        memory = {f"{case.store} {who}": case.points[f"{who} memory"] for case in found for who in ("server", "worker")}
        drawn[f"{part}-memory"] = plot.lines(f"{part}: memory", memory, "seconds", "MiB")
    return drawn
