"""Compare expressions, zones and clock changes at length, and write docs/RESULTS-time.md; `tools/time` does."""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct, field

from horae.env import SECOND
from horae.model.triggers import cron
from horae.model.triggers.cron.fire import next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.words.lists import ordinal
from horae.model.triggers.cron.zone import tzdata_version
from horae.model.triggers.decisions.values import Cron, next_fire
from tests.model.cron.clockwork import distinct_zones, look_at_zone
from tests.model.cron.differences import Verdict, compare_quartz, compare_with_cronsim, compare_with_vixie
from tests.model.cron.fuzz import LONGEST, Fuzzed, fuzz
from tests.model.zones import all_zones

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "RESULTS-time.md"
COMMON = ("0 0 * * *", "*/5 * * * *", "0 9 * * MON-FRI", "0 * * * *", "30 2 * * *", "0 0 1 * *")
COMPARISONS: dict[str, tuple[Callable[..., Verdict], str, int]] = {
    "Vixie's loop": (compare_with_vixie, "20 hours of it, mostly around a clock change", 1),
    "cronsim": (compare_with_cronsim, "six fires in a row", 1),
    "quartz by brute force": (compare_quartz, "three hours of dense ones to 400 days of rare ones", 2),
}
PIECE = 2_500  # cases that one process compares at a time


class Results(Struct):
    """All results."""

    zones: int = 0
    rules: int = 0
    changes: int = 0
    broken: list[str] = field(default_factory=list)
    at_changes: Verdict = field(default_factory=Verdict)
    compared: dict[str, Verdict] = field(default_factory=dict)
    fuzzed: Fuzzed = field(default_factory=Fuzzed)
    next_us: dict[str, float] = field(default_factory=dict)
    shared_us: float = 0.0
    every: int = 1
    seconds: float = 0.0
    commit: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
        return [self.at_changes, *self.compared.values()]

    @property
    def sound(self) -> bool:
        return not self.broken and not any(v.unexplained for v in self.verdicts) and self.fuzzed.slowest < LONGEST


def find_out(cases: int, texts: int, every: int, processes: int) -> Results:
    """Run everything, on all processors."""
    began = time.monotonic()
    results = Results(every=every, commit=_git("rev-parse", "--short=12", "HEAD") + _changes())
    results.next_us, results.shared_us = measure()
    with ProcessPoolExecutor(processes) as pool:
        _changes_of_all(results, pool, every)
        for name, (compare, _, part) in COMPARISONS.items():
            results.compared[name] = _compared(pool, compare, cases // part)
            print(f"{name}: {_counted(results.compared[name])}", flush=True)
        _fuzzed(results, pool, texts)
    results.seconds = time.monotonic() - began
    return results


def _changes_of_all(results: Results, pool: Executor, every: int) -> None:
    zones = distinct_zones()
    results.zones, results.rules = sum(map(len, zones.values())), len(zones)
    for name, future in {name: pool.submit(look_at_zone, name, every) for name in zones}.items():
        try:
            looked, verdict = future.result()
        except AssertionError as broken:
            results.broken.append(f"{name}: {broken}")
        else:
            results.changes += looked
            results.at_changes.add(verdict)
    print(f"{results.changes} clock changes: {_counted(results.at_changes)}; {len(results.broken)} broken", flush=True)


def _compared(pool: Executor, compare: Callable[..., Verdict], cases: int) -> Verdict:
    total, zones = Verdict(), all_zones()
    pieces: list[Future[Verdict]] = [
        pool.submit(compare, min(PIECE, cases - done), seed, zones)
        for seed, done in enumerate(range(0, cases, PIECE), 1)
    ]
    for piece in pieces:
        total.add(piece.result())
    return total


def _fuzzed(results: Results, pool: Executor, texts: int) -> None:
    for piece in [pool.submit(fuzz, texts // 20, seed) for seed in range(1, 21)]:
        found, total = piece.result(), results.fuzzed
        total.texts += found.texts
        total.accepted += found.accepted
        if found.slowest > total.slowest:
            total.slowest, total.slowest_text = found.slowest, found.slowest_text
    print(f"{results.fuzzed.texts} texts, the slowest {results.fuzzed.slowest * 1e3:.2f} ms", flush=True)


def measure() -> tuple[dict[str, float], float]:
    """Microseconds for the next fire, in a row, and for a trigger that shares its expression with others."""
    single = {}
    for text in COMMON:
        x, best = parse_cron(text), 1.0
        for _ in range(5):
            at, began = 1_767_225_600 * SECOND, time.process_time()
            for _ in range(2_000):
                at = next_after(x, "America/New_York", at) or 0
            best = min(best, (time.process_time() - began) / 2_000)
        single[text] = best * 1e6
    triggers = [Cron(expression=f"{i % 60} {i // 60} * * MON-FRI", timezone="Europe/Paris") for i in range(500)] * 100
    began = time.process_time()
    for trigger in triggers:
        next_fire(trigger, 1_767_225_600 * SECOND)
    return single, (time.process_time() - began) / len(triggers) * 1e6


def rendered(results: Results, command: str) -> str:
    return "\n".join([*_head(results, command), *_at_changes(results), *_differences(results), *_rest(results), ""])


def _head(results: Results, command: str) -> Iterator[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cases = sum(verdict.cases for verdict in results.verdicts)
    unexplained = sum(len(verdict.unexplained) for verdict in results.verdicts)
    yield "# Cron and clock changes: results"
    yield ""
    yield (
        f"Written by a command, not by hand. Cron expressions are asked for their fires at {_extent(results)} of every"
        " zone from 1970 to 2037, and compared with three others that take no part in Horae: cronsim, a simulation of"
        " the loop of Vixie's cron as Debian runs it, and a brute-force reading of Quartz expressions, which looks at"
        " every day and every second. Where two differ the difference has a name, or it counts as unexplained."
    )
    yield ""
    yield (
        f"- **{results.changes:,} clock changes, {len(results.broken)} with a broken property;"
        f" {cases:,} comparisons, {unexplained} unexplained differences**"
    )
    yield f"- Command: `{command}`"
    yield f"- Commit: {results.commit}"
    yield f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {results.seconds:.0f} s"
    yield f"- Machine: {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
    yield f"- tzdata {tzdata_version()}, cronsim {version('cronsim')}, Python {platform.python_version()}"
    yield ""


def _at_changes(results: Results) -> Iterator[str]:
    yield f"## {_extent(results).capitalize()}"
    yield ""
    yield (
        f"{results.zones} zones have {results.rules} sets of rules. At {results.changes:,} changes of theirs, ten hours"
        " of 16 expressions are listed forward and backward, two of them under all six policies: every fire is after"
        " the last one, both ways list the same instants, none twice, and both come to an end;"
        " `prev(next(t)) <= t < next(t)` at the change and a microsecond before and after it. The spans of constant"
        " offset that the zones are cut into are those of their files."
        f" {results.at_changes.cases:,} of the lists are compared with Vixie's loop."
    )
    yield ""
    yield from (f"- **broken** {each}" for each in results.broken[:20])


def _differences(results: Results) -> Iterator[str]:
    yield "## Differences"
    yield ""
    yield "| compared with | cases (expression, zone, start) | each is | fires | explained differences | unexplained |"
    yield "|---|---:|---|---:|---:|---:|"
    yield f"| Vixie's loop, at {_extent(results)} | {_row(results.at_changes, 'the ten hours around it')} |"
    for name, verdict in results.compared.items():
        yield f"| {name} | {_row(verdict, COMPARISONS[name][1])} |"
    yield ""
    yield "| by which rule they differ | compared with | cases |"
    yield "|---|---|---:|"
    for name, verdict in {f"Vixie's loop, at {_extent(results)}": results.at_changes, **results.compared}.items():
        yield from (f"| {rule} | {name} | {cases:,} |" for rule, cases in verdict.explained.most_common())
    yield ""
    yield from (f"- **unexplained** {each}" for verdict in results.verdicts for each in verdict.unexplained[:10])


def _rest(results: Results) -> Iterator[str]:
    fuzzed = results.fuzzed
    yield "## Almost expressions"
    yield ""
    yield (
        f"{fuzzed.texts:,} texts, expressions with characters changed, fields repeated and noise, in both dialects:"
        f" {fuzzed.accepted:,} were read, the others refused, none crashed. The longest answer took"
        f" {fuzzed.slowest * 1e3:.2f} ms of the processor; {LONGEST * 1e3:.0f} ms is the limit."
    )
    yield ""
    yield "## The next fire"
    yield ""
    yield "Microseconds of the processor in America/New_York, in a row; under 10 is the aim."
    yield ""
    yield "| expression | us |"
    yield "|---|---:|"
    yield from (f"| `{text}` | {took:.1f} |" for text, took in results.next_us.items())
    yield f"| a trigger among 50,000 that share 500 expressions | {results.shared_us:.2f} |"


def _extent(results: Results) -> str:
    return "every clock change" if results.every == 1 else f"every {ordinal(results.every)} clock change"


def _row(verdict: Verdict, extent: str) -> str:
    explained = sum(verdict.explained.values())
    return f"{verdict.cases:,} | {extent} | {verdict.fires:,} | {explained:,} | {len(verdict.unexplained)}"


def _counted(verdict: Verdict) -> str:
    return f"{verdict.cases:,} cases, {len(verdict.unexplained)} unexplained {verdict.unexplained[:2] or ''}".strip()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _changes() -> str:
    changed = _git("status", "--porcelain", "--", str(Path(cron.__file__).parent), str(Path(__file__).parent))
    return " with local changes in model/triggers/cron" if changed else ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare cron expressions at length; write the results.")
    parser.add_argument("--cases", type=int, default=100_000, help="comparisons with each other reader of cron")
    parser.add_argument("--texts", type=int, default=500_000, help="texts that are almost expressions")
    parser.add_argument("--every", type=int, default=1, help="look at every so-manieth clock change of a zone")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that share the work")
    parser.add_argument("--output", type=Path, default=PAGE, help="where to write the results")
    given = parser.parse_args()
    results = find_out(given.cases, given.texts, given.every, given.processes)
    given.output.write_text(rendered(results, " ".join(["tools/time", *sys.argv[1:]])))
    print(f"{given.output.name}: {'sound' if results.sound else 'NOT SOUND'} in {results.seconds:.0f} s")
    sys.exit(0 if results.sound else 1)


if __name__ == "__main__":
    main()
