"""`horae workers autoscale`: output, started workers and refused options."""

import os
import signal
import sys

import pytest

from tests.cli.fake_api import FakeApi, run

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
        (("--every", "soon", "--dry-run"), "soon"),
        (("--every", "0s", "--dry-run"), "0s is less than 100ms"),
    ],
)
def test_contradicting_options_are_refused(options, words):
    said = run(FakeApi({ROUTE: SIGNALS}), "workers", "autoscale", "--once", *options)

    assert said.exit_code != 0
    assert words in said.output + said.stderr


def test_a_command_that_cannot_be_started_is_named():
    said = run(FakeApi({ROUTE: SIGNALS}), "workers", "autoscale", "--once", "--", "/no/such/program")

    assert said.exit_code != 0
    assert "/no/such/program cannot be started" in said.output + said.stderr
