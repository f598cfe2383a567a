"""Run of every interleaving of every scene and every mutation, written to docs/RESULTS-races.md by `tools/races`."""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bench.kit.postgres import running_postgres
from horae.env import system_env
from horae.store.open import open_store_driver
from tests.races.catching import notices
from tests.races.crossings import CROSSINGS, cross
from tests.races.mutating.mutation import applied
from tests.races.mutations.catalog import MUTATIONS
from tests.races.scenes import SCENES
from tests.races.stage import Stage, Verdict

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "RESULTS-races.md"
SEED = 2026
VAIN = 20  # interleavings of each scene in which guards that are kept for other reasons are removed


class Results(Struct):
    """The findings of a run."""

    scenes: dict[str, Verdict] = {}
    crossings: dict[str, str | None] = {}
    noticed: dict[str, str | None] = {}
    vain: dict[
        str, int | str
    ] = {}  # mutations that should not be noticed: interleavings run, or the scene that noticed
    seconds: float = 0.0
    postgres: str = ""
    commit: str = ""

    @property
    def interleavings(self) -> int:
        return sum(verdict.runs for verdict in self.scenes.values())

    @property
    def sound(self) -> bool:
        return not (
            any(verdict.violations for verdict in self.scenes.values())
            or any(self.crossings.values())
            or any(how is None for how in self.noticed.values())
            or any(isinstance(found, str) for found in self.vain.values())
        )


async def find_out(url: str, most: int | None) -> Results:
    """Play all scenes and mutations on one database."""
    driver = await open_store_driver(url, system_env())
    await driver.migrate()
    await driver.close()
    stage = await Stage.open(url)
    results, began = Results(commit=_git("rev-parse", "--short=12", "HEAD") + _changes()), time.monotonic()
    results.postgres = await stage.duel.onlooker.fetchval("SHOW server_version")
    for name, scene in SCENES.items():
        results.scenes[name] = verdict = await stage.play(scene, most=most, seed=SEED)
        print(f"{verdict.runs:6} interleavings, {len(verdict.violations)} violations: {name}", flush=True)
        for order, wrong in verdict.violations[:3]:
            print(f"       {''.join(order)}: {wrong}", flush=True)
    for name, crossing in CROSSINGS.items():
        results.crossings[name] = await cross(stage, crossing)
    for name, mutation in MUTATIONS.items():
        if mutation.caught_by:
            results.noticed[name] = how = await notices(stage, mutation, mutation.caught_by, SEED)
            print(f"mutation: {name}: {how or 'NOT NOTICED'}", flush=True)
        else:
            results.vain[name] = await _in_vain(stage, name)
            print(f"mutation: {name}: {results.vain[name]}", flush=True)
    results.seconds = time.monotonic() - began
    await stage.close()
    return results


async def _in_vain(stage: Stage, name: str) -> int | str:
    """Return the number of interleavings that did not notice a mutation, or the scene that did."""
    runs = 0
    for who, scene in SCENES.items():
        verdict = await stage.play(scene, most=VAIN, seed=SEED, changed=lambda: applied(MUTATIONS[name]))
        runs += verdict.runs
        if verdict.violations:
            return f"{who}: {verdict.violations[0][1].splitlines()[0]}"
    return runs


def rendered(results: Results, command: str) -> str:
    return "\n".join([*_head(results, command), *_scenes(results), *_crossings(results), *_mutations(results), ""])


def _head(results: Results, command: str) -> Iterator[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    violations = sum(len(verdict.violations) for verdict in results.scenes.values())
    guards = len(results.noticed) + len(results.vain)
    noticed = sum(how is not None for how in results.noticed.values())
    yield "# Races on PostgreSQL: results"
    yield ""
    yield (
        "Written by a command, not by hand. Two operations of the store run as two real transactions on a real server,"
        " stopped before every statement and before the commit, and every order of their statements is run."
        " After each the invariants are checked: every item on exactly one shelf, slices without overlap,"
        " an owner, timer or gate for what is not final, no attempt recorded twice, every nominal fire covered by"
        " exactly one ledger row, every running slice of a live session known to its worker or still to be told, no"
        " deadlock and no serialization failure; and what each pair promises beyond that."
    )
    yield ""
    yield (
        f"- **{results.interleavings:,} interleavings of {len(results.scenes)} pairs, {violations} violations;"
        f" {noticed} of {guards} guards are noticed when they are gone,"
        f" {len(results.vain)} are kept for another reason**"
    )
    yield f"- Command: `{command}`"
    yield f"- Commit: {results.commit}"
    yield f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {results.seconds:.0f} s"
    yield f"- Machine: {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
    yield f"- PostgreSQL {results.postgres}, Python {platform.python_version()}"
    yield ""


def _scenes(results: Results) -> Iterator[str]:
    yield "## Pairs"
    yield ""
    yield "| pair | interleavings | of them one side waited | all of them | violations |"
    yield "|---|---:|---:|---|---:|"
    for name, verdict in results.scenes.items():
        extent = "all" if verdict.complete else f"a sample, seed {SEED}"
        yield f"| {name} | {verdict.runs} | {verdict.blocked} | {extent} | {len(verdict.violations)} |"
    yield ""
    for name, verdict in results.scenes.items():
        for order, wrong in verdict.violations[:3]:
            yield f"- **{name}** ({''.join(order)}): {' '.join(wrong.split())}"


def _crossings(results: Results) -> Iterator[str]:
    yield "## Locks taken within one statement"
    yield ""
    yield (
        "No barrier stands inside a statement. Here a third transaction holds one of three rows that both sides need,"
        " and lets go when both wait."
    )
    yield ""
    yield "| pair | result |"
    yield "|---|---|"
    yield from (f"| {name} | {wrong or 'no deadlock'} |" for name, wrong in results.crossings.items())
    yield ""


def _mutations(results: Results) -> Iterator[str]:
    yield "## Guards, removed one at a time"
    yield ""
    yield "| without it ... | is noticed by | how |"
    yield "|---|---|---|"
    for name, how in results.noticed.items():
        yield f"| {name} | {_shown(MUTATIONS[name].caught_by)} | {_cell(how or '**not noticed**')} |"
    yield ""
    yield "Nothing notices these; they are kept all the same:"
    yield ""
    yield "| without it ... | interleavings that did not notice | why it is kept |"
    yield "|---|---:|---|"
    for name, found in results.vain.items():
        yield f"| {name} | {_cell(str(found))} | {MUTATIONS[name].kept_because} |"


def _shown(who: str) -> str:
    return f"contract: {who.split('.')[1].replace('_', ' ').removeprefix('test ')}" if who.startswith("test_") else who


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:160]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _changes() -> str:
    return " with local changes in the source" if _git("status", "--porcelain", "--", "src") else ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Interleave the store's operations on PostgreSQL; write the results.")
    parser.add_argument("--most", type=int, help="run at most so many interleavings of each pair (default: all)")
    parser.add_argument("--output", type=Path, default=PAGE, help="where to write the results")
    given = parser.parse_args()
    with running_postgres({"fsync": "off"}) as server:
        results = asyncio.run(find_out(server.create_database("races"), given.most))
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text(rendered(results, " ".join(["tools/races", *sys.argv[1:]])))
    print(f"{given.output.name}: {results.interleavings} interleavings in {results.seconds:.0f} s")
    sys.exit(0 if results.sound else 1)


if __name__ == "__main__":
    main()
