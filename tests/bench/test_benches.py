"""Each bench at a tiny size, with real processes: its output, and the removal of its files and processes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from bench import BENCHES
from bench.kit.postgres import Postgres
from bench.kit.results import Result
from bench.kit.stores import sources
from horae.env import system_env
from tests.waiting import eventually_sync

SMALL = {
    "throughput": ["--executions", "300", "--singles", "20", "--clients", "4", "--repeats", "1"],
    "submit": ["--bulk", "300", "--singles", "20", "--clients", "4", "--repeats", "1"],
    "latency": ["--samples", "3", "--calibrate", "300"],
    "reads": [
        "--history",
        "400",
        "--drain",
        "500",
        "--rate",
        "50",
        "--clients",
        "4",
        "--seconds",
        "1",
        "--repeats",
        "1",
    ],
    "api": ["--jobs", "60", "--history", "300", "--samples", "2"],
    "sessions": ["--sessions", "5", "--rate", "10", "--seconds", "1"],
    "concurrency": ["--executions", "20", "--seconds", "1"],
    "sustain": ["--seconds", "2", "--rate", "100", "--mixed"],
    "growth": ["--history", "0", "--queued", "400", "--parcel", "100", "--executions", "200", "--repeats", "1"],
    "policies": ["--seconds", "2", "--executions", "200", "--repeats", "1"],
    "claims": ["--lanes", "20", "--queued", "2000", "--executions", "200", "--repeats", "1"],
    "timers": ["--triggers", "200", "--rate", "20", "--seconds", "1", "--herd", "50"],
    "workflows": [
        *("--chain", "5", "--fan", "10", "--diamonds", "2", "--foreach", "20", "--remembered", "50", "--repeats", "1")
    ],
    "logs": ["--rate", "500", "--seconds", "1", "--calibrate", "300"],
    "events": ["--listeners", "3", "--rate", "50", "--seconds", "1"],
    "disk": ["--executions", "500", "--singles", "20"],
    "start": ["--repeats", "1"],
    "idle": ["--seconds", "1"],
    "stages": ["--rounds", "2", "--together", "20"],
}
METRICS = {
    "throughput": {"executions", "server processor", "worker processor"},
    "submit": {"submissions", "generator processor"},
    "latency": {"p50", "p90", "p99", "p100"},
    "reads": {"reads", "p50", "p99", "executions meanwhile"},
    "api": {"p50", "p99"},
    "sessions": {"server processor", "server memory"},
    "concurrency": {
        "worker memory", "worker memory before", "worker processor", "largest gap between heartbeats", "all started",
    },
    "sustain": {
        "executions", "steadiness of the rate", "largest queue", "server memory", "server memory after a fifth",
        "worker memory", "worker memory after a fifth", "pick-up p50", "pick-up p99", "pick-up p100",
        "steadiness of the pick-up's p50", "server processor", "worker processor", "bench processor",
    },
    "growth": {"executions without", "executions with", "ratio"},
    "policies": {
        "Jain index", "p99 of its wait", "bound", "overtaken past the bound", "deadlines missed", "mean wait",
        "longest wait", "executions", "ratio to fifo", "server processor",
    },
    "claims": {"executions claimed and reported", "ratio"},
    "timers": {
        "triggers written", "disk", "first fire", "server memory", "lag p50", "lag p99", "lag p100", "not fired",
        "fired twice", "API p99", "fires", "all queued after", "cost",
    },
    "workflows": {"hop p50", "hop p99", "took", "steps", "remembered steps"},
    "logs": {"lines", "lost", "worker memory", "server processor", "worker processor", "executions beside"},
    "events": {"listeners' processor", "listeners' memory", "server processor", "told", "changes told"},
    "disk": {"overhead", "payload"},
    "start": {"serves", "first execution finished"},
    "idle": {"processor", "memory", "start"},
    "stages": {
        "HTTP, submission", "server: decode request", "engine: check params", "store: form parcels", "store: submit +",
        "store: claim +", "server: encode answer", "worker: decode answer", "worker: take in", "worker: call",
        "worker: gather report", "worker: encode report", "server: decode report", "store: settle +", "commit alone",
        "HTTP, exchange", "sum",
    },
}  # fmt: skip
WITHOUT_STORE = ("start", "idle")
TIMEOUT = 55


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder for a bench's files; check that it is empty afterwards."""
    return tmp_path


def bench(folder: Path, *arguments: str) -> str:
    done = subprocess.run(command(*arguments), env=environment(folder), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "its files are gone"
    return done.stdout


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bench", *arguments]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "HORAE_PORT": "1", "HORAE_STORE": "nowhere", "HORAE_DEBUG": "1"}


def results(text: str) -> list[Result]:
    return [msgspec.json.decode(line, type=Result) for line in text.splitlines()]


def figures(found: list[Result]) -> dict[str, float]:
    return {result.metric: result.value for result in found}


def test_every_bench_is_tried_here():
    assert SMALL.keys() == METRICS.keys() == BENCHES.keys()


# These are tried by `make prove` only.
LONG = ("events", "logs", "timers", "policies", "growth", "disk", "concurrency", "reads", "api", "sustain", "idle")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.prove) if name in LONG else name for name in BENCHES]
)
def test_json_lines_have_one_result_each(folder, name):
    where = [] if name in WITHOUT_STORE else ["--store", "sqlite://"]
    found = results(bench(folder, name, *SMALL[name], *where, "-o", "jsonl"))

    assert {result.bench for result in found} == {name}
    assert {result.metric for result in found} == METRICS[name]
    for result in found:
        assert {"cpu", "cores", "python", "horae", "loadBefore"} <= result.settings.keys()


def test_commands_run_in_several_workers(folder):
    flags = ["--kind", "command", "--executions", "6", "--workers", "2", "--seconds", "1", "--store", "sqlite://"]
    found = results(bench(folder, "concurrency", *flags, "-o", "jsonl"))

    assert {result.case for result in found} == {"sqlite command"}
    assert found[0].settings["workers"] == 2


def test_sessions_of_a_killed_server_reconnect_and_no_execution_is_lost_or_repeated(folder, postgres: Postgres):
    flags = ["--sessions", "6", "--servers", "2", "--kill", "--rate", "20", "--seconds", "3"]
    found = figures(results(bench(folder, "sessions", *flags, "--store", postgres.url(), "-o", "jsonl")))

    assert found["sessions that moved"] == 3
    assert found["sessions lost"] == found["lost"] == found["run twice"] == 0
    assert found["executions"] > 20


def test_the_only_server_is_not_killed(folder):
    done = subprocess.run(command("sessions", "--kill"), env=environment(folder), capture_output=True, text=True)

    assert done.returncode == 2
    assert "Name more with --servers" in done.stderr


def test_a_change_is_visible_to_the_next_read_on_another_server(folder, postgres: Postgres):
    found = results(bench(folder, "reads", *SMALL["reads"], "--checks", "3", "--store", postgres.url(), "-o", "jsonl"))

    (stale,) = [result for result in found if result.metric == "stale reads"]
    assert (stale.value, stale.reached, stale.settings["checks"]) == (0, True, 6)


def test_a_postgresql_database_is_removed_afterwards(folder, postgres: Postgres):
    text = bench(folder, "submit", *SMALL["submit"], "--store", postgres.url(), "-o", "json")
    found = msgspec.json.decode(text, type=list[Result])

    assert {result.case for result in found} == {"postgresql bulk", "postgresql single", "postgresql SDK"}
    assert "fsync on" in found[0].settings["store"]
    databases = "SELECT datname FROM pg_database"  # databases of parallel tests disappear, too
    assert eventually_sync(lambda: "horae_bench" not in postgres.execute(databases), within=40)


def test_a_table_shows_the_targets_and_the_settings(folder):
    text = bench(folder, "submit", *SMALL["submit"], "--store", "sqlite://")

    assert re.search(r"CASE +METRIC +VALUE +UNIT +TARGET", text)
    assert re.search(r"sqlite bulk +submissions +[\d,]+ +1/s +at least 150,000 at executions 100,000: not tried", text)
    assert "sqlite bulk, sqlite SDK: executions 300, perRequest 1000, requestsInFlight 4\n" in text
    assert "sqlite single: executions 20, perRequest 1, clients 4\n" in text


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_one_kind_of_store_can_be_selected(kind):
    with sources(f"{kind}://", system_env()) as found:
        assert [source.name for source in found] == [kind]


@pytest.mark.parametrize("store", ["mysql://x", "sqlite:////no/such/folder/x.db", "postgresql://127.0.0.1:1/x"])
def test_an_invalid_store_is_refused(folder, store):
    done = subprocess.run(
        command("throughput", "--store", store), env=environment(folder), capture_output=True, text=True, timeout=150
    )

    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_processes_end_with_the_bench(folder, number):
    usual = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background processes of a shell inherit an ignored SIGINT
    begun = subprocess.Popen(
        command("throughput", "--executions", "3000000", "--store", "sqlite://"),
        env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, usual)
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
