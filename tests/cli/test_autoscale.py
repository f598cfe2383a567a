"""`horae workers autoscale`: output, started workers and refused options."""

import os
import signal
import sys

import pytest

from horae.cli.fleet import autoscale
from horae.cli.fleet.autoscale import BOOT, CommandPool, ProcessPool
from horae.env import SECOND, VirtualClock
from tests.cli.fake_api import FakeApi, run
from tests.waiting import eventually_sync

SIGNALS = {
    "queue": "default", "backlog": 40, "running": 8, "oldestAge": 2.5, "arrivalRate": 3.0, "serviceRate": 1.5,
    "duration": 1.0, "utilisation": 0.8, "workers": 2, "slots": 20, "targetWait": "5s", "desiredWorkers": 7,
}  # fmt: skip
ROUTE = "GET /autoscale/queues/{queue}"


def test_a_dry_run_shows_the_change_and_makes_none():
    api = FakeApi({ROUTE: SIGNALS})
    said = run(
        api, "workers", "autoscale", "--queue", "gpu", "--target-wait", "2s", "--slots", "4", "--dry-run", "--once"
    )

    assert said.exit_code == 0
    assert "40 queued" in said.stdout
    assert "wants 7: would become 6" in said.stdout  # four at a time
    (asked,) = api.requests
    assert asked.path == "/autoscale/queues/gpu"
    assert asked.query == {"targetWait": "2s", "slots": "4"}


def test_commands_start_and_drain_workers_elsewhere(tmp_path):
    line = f"echo $HORAE_WORKERS $HORAE_DESIRED $HORAE_CHANGE >> {tmp_path}/"
    api = FakeApi({ROUTE: SIGNALS})
    ways = ("--up", f"{line}up", "--down", f"{line}down", "--once")

    assert run(api, "workers", "autoscale", "--max", "5", *ways).exit_code == 0
    api.routes[ROUTE] = {**SIGNALS, "workers": 9, "desiredWorkers": 0}
    assert run(api, "workers", "autoscale", "--max", "5", "--min", "1", *ways).exit_code == 0
    assert (tmp_path / "up").read_text() == "2 5 3\n"
    assert (tmp_path / "down").read_text() == "9 5 4\n"  # workers beyond --max are drained without a cooldown


async def test_requested_workers_count_until_they_register_or_take_too_long():
    clock = VirtualClock()
    pool = CommandPool("true", "true", clock.monotonic)
    await pool.resize(1, 5)
    assert [await pool.count(seen) for seen in (1, 3, 5, 4)] == [(5, 0), (5, 0), (5, 0), (4, 0)]
    await pool.resize(4, 2)
    assert [await pool.count(seen) for seen in (4, 3, 2, 3)] == [(2, 0), (2, 0), (2, 0), (3, 0)]

    await pool.resize(3, 5)
    clock.advance(int(BOOT * SECOND))
    assert await pool.count(3) == (3, 0)


async def test_workers_elsewhere_are_not_started_again():
    pool = ProcessPool([sys.executable, "-c", "import signal; signal.pause()"], print)
    await pool.resize(0, 2)
    try:
        assert [await pool.count(seen) for seen in (0, 2, 5)] == [(2, 0), (2, 0), (2, 3)]
    finally:
        await pool.close()


def test_a_command_that_takes_too_long_is_killed_with_its_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(autoscale, "PATIENCE", 0.5)
    os.mkfifo(fifo := tmp_path / "fifo")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    line = f"sleep 600 > {fifo}; true"

    said = run(FakeApi({ROUTE: SIGNALS}), "workers", "autoscale", "--once", "--up", line, "--down", "true")

    assert (said.exit_code, "took longer than a minute" in said.stderr) == (1, True)

    def has_ended():
        try:
            return os.read(reader, 1) == b""
        except BlockingIOError:  # a process has the other end open
            return False

    assert eventually_sync(has_ended)
    os.close(reader)


def test_processes_are_started_and_drained_with_it(tmp_path):
    worker = (
        "import os, signal, sys, pathlib\n"
        f"place = pathlib.Path({str(tmp_path)!r}) / str(os.getpid())\n"
        "signal.signal(signal.SIGTERM, lambda *_: (place.with_suffix('.drained').touch(), sys.exit(0)))\n"
        "place.with_suffix('.up').touch()\n"
        "signal.pause()\n"
    )

    def as_it_goes(request):
        """Report a backlog until three workers are up, then none; stop the command when all three have drained."""
        drained = len(list(tmp_path.glob("*.drained")))
        if drained == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return SIGNALS if len(list(tmp_path.glob("*.up"))) < 3 else {**SIGNALS, "desiredWorkers": 0}

    api = FakeApi({ROUTE: as_it_goes})
    said = run(api, "workers", "autoscale", "--max", "3", "--", sys.executable, "-c", worker)

    assert said.exit_code == 0, said.output
    assert len(list(tmp_path.glob("*.up"))) == 3
    assert "3 workers, wants 0: becomes 0" in said.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "exactly one way to start and drain workers"),
        (("--up", "more"), "exactly one way to start"),
        (("--min", "3", "--max", "2", "--", "horae", "worker"), "--min 3 is more than --max 2"),
        (("--", "horae", "worker"), "would be drained at once"),
        (("--every", "soon", "--dry-run"), "soon"),
        (("--every", "0s", "--dry-run"), "0s is less than 100ms"),
    ],
)
def test_contradicting_options_are_refused(options, words):
    said = run(FakeApi({ROUTE: SIGNALS}), "workers", "autoscale", "--once", *options)

    assert said.exit_code != 0
    assert words in said.output + said.stderr


def test_a_command_that_cannot_be_started_is_named():
    said = run(FakeApi({ROUTE: SIGNALS}), "workers", "autoscale", "--", "/no/such/program")

    assert said.exit_code != 0
    assert "/no/such/program cannot be started" in said.output + said.stderr
