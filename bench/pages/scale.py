"""Generation of docs/SCALE.md with figures for planning growth.

`make scale`, that is `python -m bench.pages.scale FILE`, writes the page. The output of each command is stored as JSON
lines beside the page, so that `--only PART` measures one part again and `--only none` writes the page from stored
output.
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

PACE = 1_160  # executions per second: 100 million per day
FLEETS = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 3))  # servers and workers on one database
PARTS = ("sustained", "soak", "fleets", "singles", "disk")


def commands(seconds: int, soak: int, fleet: int) -> Mapping[str, list[tuple[str, ...]]]:
    """Return the commands for each part of the page, with lengths in seconds."""
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
    """Return the part of the page to which a run belongs."""
    flags = {"--rate": "soak", "--servers": "fleets", "--per-request": "singles"}
    if run.bench == "disk":
        return "disk"
    return next((part for flag, part in flags.items() if flag in run.command.split()), "sustained")


def write(file: Path, runs: Sequence[Run]) -> None:
    """Write the page, its pictures, and the runs."""
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
    """Measure and write the page; failures are shown on the page, and by the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages.scale", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=int, default=60, help="the length of the run at the highest rate")
    parser.add_argument(
        "--soak-seconds", type=int, default=3600, help="the length of the run at the rate of 100M per day"
    )
    parser.add_argument("--fleet-seconds", type=int, default=20, help="the length of each other run")
    parser.add_argument("--only", action="append", default=[], choices=(*PARTS, "none"), help="repeatable")
    options = parser.parse_args(arguments)
    chosen = options.only or PARTS
    before = (
        document.stored_runs(options.file.parent / options.file.stem.lower() / "results.jsonl") if options.only else []
    )
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
