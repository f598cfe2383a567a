"""docs/SCALE.md: its first line, its arithmetic, and its notes about missing measurements."""

from pathlib import Path

import pytest

from bench.kit.results import Result
from bench.pages import document, scale
from bench.pages.document import Run

MACHINE = {"cpu": "x", "cores": 2, "loadBefore": 1.0}
COSTS = {"server processor": 5.0, "worker processor": 4.0, "database processor": 2.0, "bench processor": 1.0}
MEMORY = {"server memory": 90.0, "worker memory": 50.0}
SUSTAIN = {
    "executions": 120_000.0, "steadiness of the rate": 0.97, "largest queue": 100_000.0, **COSTS, **MEMORY,
    **{f"{name} after a fifth": value for name, value in MEMORY.items()},
    "pick-up p50": 4.0, "pick-up p99": 9.0, "steadiness of the pick-up's p50": 1.01,
}  # fmt: skip
POINTS = {"executions", "server memory", "worker memory", "pick-up p99"}


def run(command: str, *results: Result, failure: str = "") -> Run:
    return Run(
        command=f"python -m bench {command}", at="2026-01-01T00:00:00Z", commit="abc", machine=MACHINE,
        results=list(results), failure=failure,
    )  # fmt: skip


def sustained(command: str, seconds: int = 60, servers: int = 1, **values: float) -> Run:
    settings = {"seconds": seconds, "servers": servers, "workers": servers, "cores": 2}
    found = [
        Result(
            bench="sustain", case="postgresql all it takes", metric=metric, value=value, unit="", settings=settings,
            points=[(0.0, value), (30.0, value)] if metric in POINTS else [],
        )
        for metric, value in {**SUSTAIN, **values}.items()
    ]  # fmt: skip
    return run(command, *found)


def disk() -> Run:
    sizes = {"parcels of one": 700.0, "parcels of 500": 90.0}
    return run("disk", *(
        Result(bench="disk", case=f"postgresql {case}", metric=metric, value=value, unit="bytes/execution", settings={})
        for case, size in sizes.items() for metric, value in (("overhead", size), ("payload", 9.0))
    ))  # fmt: skip


def written(folder: Path, *runs: Run) -> str:
    scale.write(folder / "SCALE.md", runs)
    return (folder / "SCALE.md").read_text()


@pytest.mark.parametrize(
    ("rate", "line"),
    [
        (123_456.0, "# Scale: 123,456 executions a second for 60 s on PostgreSQL and 2 cores: 100,000/s or more"),
        (99_999.0, "# Scale: 99,999 executions a second for 60 s on PostgreSQL and 2 cores: short of 100,000/s"),
    ],
)
def test_the_first_line_has_the_sustained_rate(tmp_path, rate, line):
    assert written(tmp_path, sustained("sustain --seconds 60", executions=rate)).splitlines()[0] == line


def test_storage_is_computed_from_measurements(tmp_path):
    text = written(tmp_path, disk())

    assert "| 1,000,000 | 7 | 4.9 GB | 630 MB | 700 MB | 7.17 GB |" in text
    assert "| 100,000,000 | 90 | 6.3 TB | 810 GB | 900 GB | 9.22 TB |" in text


def test_machines_are_computed_from_microseconds(tmp_path):
    single = {"server processor": 180.0, "worker processor": 22.0, "database processor": 50.0}
    text = written(
        tmp_path, sustained("sustain --seconds 60"), sustained("sustain --per-request 1 --seconds 20", **single)
    )

    assert "| 100,000 | 8,640M | a thousand in a request | 1 | 1 | 1 |" in text
    assert "| 100,000 | 8,640M | one in a request, 64 clients | 36 | 5 | 10 |" in text
    assert "| 8 | 4,000,000 | 160,000 |" in text
    assert "| 10,000,000 | once an hour | 2,778 | 1 | 1 | 1 |" in text


def test_added_servers_are_compared_with_one(tmp_path):
    one = sustained("sustain --servers 1 --workers 1 --seconds 20", executions=100_000.0)
    three = sustained("sustain --servers 3 --workers 3 --seconds 20", servers=3, executions=90_000.0)
    text = written(tmp_path, one, three)

    assert "| 1 and 1 | 100,000 | 100% | 5 | 4 | 2 | 1.2 | 17% |" in text
    assert "| 3 and 3 | 90,000 | 90% | 5 | 4 | 2 | 1.08 | 17% |" in text


def test_a_run_shorter_than_an_hour_is_marked(tmp_path):
    command = "sustain --seconds {} --rate 1160 --mixed --concurrency 100"

    assert "600 s long, not an hour" in written(tmp_path, sustained(command.format(600), 600))
    assert "not an hour" not in written(tmp_path, sustained(command.format(3600), 3600))
    assert {path.stem for path in (tmp_path / "scale").glob("*.svg")} == {"soak-rate", "soak-memory"}


def test_missing_and_failed_measurements_are_shown(tmp_path):
    text = written(tmp_path, run("disk", failure="Error:\nThe disk is full."))

    assert text.startswith("# Scale: no sustained run yet\n")
    assert "- **failed:** `python -m bench disk`: The disk is full." in text
    for part in scale.PARTS:
        assert part == "singles" or f'SCALE_FLAGS="--only {part}"' in text


def test_every_part_finds_its_own_runs_again():
    for part, commands in scale.commands(60, 3600, 20).items():
        assert {scale.part_of(run(" ".join(command))) for command in commands} == {part}


def test_one_part_can_be_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "measure", lambda command: run(" ".join(command)))
    written(tmp_path, sustained("sustain --seconds 60"), disk())

    assert scale.main([str(tmp_path / "SCALE.md"), "--only", "disk"]) == 0

    kept = document.stored_runs(tmp_path / "scale" / "results.jsonl")
    assert [(each.command, len(each.results) > 0) for each in kept] == [
        ("python -m bench sustain --seconds 60", True),
        ("python -m bench disk", False),
    ]
