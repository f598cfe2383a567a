"""`horae bench`: real processes at a small scale, and refused stores."""

import os
import signal
import subprocess
import sys

import msgspec
import psutil
import pytest

from tests.waiting import eventually_sync

SMALL = ("--executions", "300", "--samples", "3")


@pytest.fixture
def folder(tmp_path):
    """Return the folder for temporary files; check that it is empty after a measurement."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def begin(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "horae.cli.main", "bench", *arguments],
        env={**os.environ, "TMPDIR": str(folder), "HORAE_PORT": "1", "HORAE_STORE": "nowhere"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def bench(folder, *arguments):
    process = begin(folder, *arguments)
    shown, said = process.communicate(timeout=60)
    return process.returncode, shown, said


def test_it_measures_a_server_and_a_worker_and_leaves_no_files(folder):
    code, shown, said = bench(folder, *SMALL, "-o", "json")

    assert code == 0, said
    found = msgspec.json.decode(shown)
    assert found.keys() == {"submissions", "executions", "pickUpP50", "pickUpP99"}
    assert 0 < found["executions"] < found["submissions"]
    assert 0 < found["pickUpP50"] <= found["pickUpP99"]


def test_an_empty_database_is_measured_once_and_refused_when_it_is_in_use(folder, postgres_url):
    code, shown, said = bench(folder, *SMALL, "--store", postgres_url)
    assert code == 0, said
    assert "pick-up p50" in shown

    code, _, said = bench(folder, *SMALL, "--store", postgres_url)
    assert code == 2
    assert "contains tables of Horae" in said
    assert "Name an empty database." in said


def test_a_file_is_measured_where_the_command_starts(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    code, _, said = bench(folder, *SMALL, "--store", "sqlite:///own.db")
    assert code == 0, said
    code, _, said = bench(folder, *SMALL, "--store", "sqlite:///own.db")
    assert (code, "contains tables of Horae" in said) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_its_processes_end_with_it(folder, number):
    usual = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background processes of a shell inherit an ignored SIGINT
    process = begin(folder, "--executions", "3000000")
    signal.signal(signal.SIGINT, usual)
    try:
        eventually_sync(lambda: len(psutil.Process(process.pid).children()) == 2, within=30)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        process.communicate(timeout=30)
    finally:
        process.kill()

    assert process.returncode == 130
    assert [child for child in children if child.is_running()] == []
