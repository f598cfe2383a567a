"""Writes docs/SCALE.md: `make scale`, that is `python -m bench.pages.scale FILE`, measures what growth is planned by.

What each command printed is kept as JSON lines beside the page, so that `--only PART` measures one part anew and
`--only none` writes the page from what was measured before.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.pages import document
from bench.pages.document import Run
from bench.pages.scale_page import page, pictures
from horae.env import system_env
from horae.model.base.instant import format_instant

PACE = 1_160  # executions a second: 100M a day
FLEETS = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 3))  # servers and workers on one database
PARTS = ("sustained", "soak", "fleets", "singles", "disk")


def commands(seconds: int, soak: int, fleet: int) -> Mapping[str, list[tuple[str, ...]]]:
    """What is run for each part of the page, for so many seconds."""
    grown: list[tuple[str, ...]] = [
        ("sustain", "--servers", str(servers), "--workers", str(workers), "--seconds", str(fleet))
        for servers, workers in FLEETS
    ]
    pace = ("--seconds", str(soak), "--rate", str(PACE), "--mixed", "--concurrency", "100")
    return {
        "sustained": [("sustain", "--seconds", str(seconds))],
        "soak": [("sustain", *pace, "--store", store) for store in ("sqlite://", "postgresql://")],
        "fleets": grown,
        "singles": [("sustain", "--per-request", "1", "--seconds", str(fleet))],
        "disk": [("disk",)],
    }


def part_of(run: Run) -> str:
    """Which part of the page a run is for."""
    flags = {"--rate": "soak", "--servers": "fleets", "--per-request": "singles"}
    if run.bench == "disk":
        return "disk"
    return next((part for flag, part in flags.items() if flag in run.command.split()), "sustained")


def write(file: Path, runs: Sequence[Run]) -> None:
    """The page, its pictures, and what they are made from."""
    folder = file.parent / file.stem.lower()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(run) + b"\n" for run in runs))
    parts = {part: [run for run in runs if part_of(run) == part] for part in PARTS}
    drawn = pictures(parts)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text)
    file.write_text(page(parts, folder.name, drawn))


def main(arguments: Sequence[str]) -> int:
    """Measure and write it down; what failed is told on the page, and by the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages.scale", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=int, default=60, help="of the run at the highest rate")
    parser.add_argument("--soak-seconds", type=int, default=3600, help="of the run at the pace of 100M a day")
    parser.add_argument("--fleet-seconds", type=int, default=20, help="of each other run")
    parser.add_argument("--only", action="append", default=[], choices=(*PARTS, "none"), help="may be repeated")
    options = parser.parse_args(arguments)
    chosen = options.only or PARTS
    before = document.kept(options.file.parent / options.file.stem.lower() / "results.jsonl") if options.only else []
    runs = [run for run in before if part_of(run) not in chosen]
    asked = commands(options.seconds, options.soak_seconds, options.fleet_seconds)
    for run in _measured([each for part in PARTS if part in chosen for each in asked[part]]):
        runs.append(run)
        write(options.file, runs)
    write(options.file, runs)
    return 1 if any(run.failure for run in runs) else 0


def _measured(commands: Sequence[tuple[str, ...]]) -> Iterator[Run]:
    for command in commands:
        sys.stderr.write(f"{format_instant(system_env().now())} python -m bench {' '.join(command)}\n")
        yield document.measure(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
