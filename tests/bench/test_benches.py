"""Each bench, tiny, on real processes: what it prints, and that nothing of it is left."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from horae.bench import BENCHES
from horae.bench.document import document
from horae.bench.results import Result
from horae.testing.postgres import Postgres
from tests.waiting import eventually_sync

SMALL = {
    "throughput": ["--executions", "300", "--repeats", "1"],
    "latency": ["--samples", "3"],
    "growth": ["--history", "400", "--executions", "200", "--repeats", "1"],
    "submit": ["--bulk", "300", "--singles", "20", "--clients", "4", "--repeats", "1"],
    "idle": ["--seconds", "1"],
    "concurrency": ["--executions", "20", "--seconds", "1"],
}
METRICS = {
    "throughput": {"executions", "server processor", "worker processor"},
    "latency": {"p50", "p90", "p99", "p100"},
    "growth": {"executions", "ratio"},
    "submit": {"submissions"},
    "idle": {"processor", "memory", "start"},
    "concurrency": {"worker memory", "worker memory before", "worker processor", "all started"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a bench keeps its files; empty again when it has ended."""
    return tmp_path


def bench(folder: Path, *arguments: str) -> str:
    done = subprocess.run(command(*arguments), env=environment(folder), capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "its files are gone"
    return done.stdout


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "horae.cli.main", "bench", *arguments]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "HORAE_PORT": "1", "HORAE_STORE": "nowhere", "HORAE_DEBUG": "1"}


def results(text: str) -> list[Result]:
    return [msgspec.json.decode(line, type=Result) for line in text.splitlines()]


def on_sqlite(name: str) -> list[str]:
    return [] if name == "idle" else ["--store", "sqlite://"]


def test_every_bench_is_tried_here():
    assert SMALL.keys() == METRICS.keys() == BENCHES.keys()


@pytest.mark.parametrize("name", BENCHES)
def test_a_line_a_result(folder, name):
    found = results(bench(folder, name, *SMALL[name], *on_sqlite(name), "-o", "jsonl"))

    assert {result.bench for result in found} == {name}
    assert {result.metric for result in found} == METRICS[name]
    assert all((result.value >= 0 and result.unit) or result.metric == "ratio" for result in found)
    for result in found:
        assert {"cpu", "cores", "python", "horae", "loadBefore"} <= result.settings.keys()


def test_on_postgresql_in_a_database_that_is_gone_afterwards(folder, postgres: Postgres):
    text = bench(folder, "submit", *SMALL["submit"], "--store", postgres.url(), "-o", "json")
    found = msgspec.json.decode(text, type=list[Result])

    assert [result.case for result in found] == ["postgresql bulk", "postgresql single"]
    assert "fsync on" in found[0].settings["store"]
    assert "horae_bench" not in postgres.execute("SELECT datname FROM pg_database")


def test_people_see_a_table_and_the_settings(folder):
    text = bench(folder, "submit", *SMALL["submit"], "--store", "sqlite://")

    assert re.search(r"CASE +METRIC +VALUE", text)
    assert re.search(r"sqlite bulk +submissions +[\d,]+ +1/s", text)
    assert "sqlite bulk: executions 300, perRequest 1000, requestsInFlight 4\n" in text
    assert "sqlite single: executions 20, clients 4\n" in text


@pytest.mark.parametrize("store", ["mysql://x", "sqlite:////no/such/folder/x.db", "postgresql://127.0.0.1:1/x"])
def test_a_store_that_cannot_be_measured(folder, store):
    done = subprocess.run(
        command("throughput", "--store", store), env=environment(folder), capture_output=True, text=True, timeout=50
    )

    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_it_started_ends_with_it(folder, number):
    begun = subprocess.Popen(
        command("throughput", "--executions", "3000000", "--store", "sqlite://"),
        env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        eventually_sync(lambda: len(psutil.Process(begun.pid).children()) == 2, within=30)
        children = psutil.Process(begun.pid).children(recursive=True)
        begun.send_signal(number)
        said, _ = begun.communicate(timeout=30)
    finally:
        begun.kill()

    assert begun.returncode == 130, said
    assert [child for child in children if child.is_running()] == []
    assert list(folder.iterdir()) == []


def test_the_page_of_results_says_what_is_asked_for():
    settings = {"store": "SQLite 3", "executions": 100, "runs": [20_000.0, 25_000.0]}
    slow = Result(bench="throughput", case="sqlite whole life", metric="executions", value=22_500.0, unit="1/s",
                  settings=settings)  # fmt: skip
    idle = Result(bench="idle", case="horae up", metric="memory", value=91.2, unit="MiB", settings={})

    text = document("make bench", 0, "abc", [("horae bench throughput", [slow]), ("horae bench idle", [idle])])

    assert "- at 1970-01-01T00:00:00Z, commit abc" in text
    row = "| sqlite whole life | executions | 22,500 | 1/s | at least 30,000: **missed** | 20,000, 25,000 |"
    assert f"{row}\n\n- store SQLite 3, executions 100\n" in text
    assert "| horae up | memory | 91.2 | MiB | under 150: reached |  |" in text
