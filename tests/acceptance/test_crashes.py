"""One `horae up`, killed again and again: its work restarts at once, and nothing is set aside as poison."""

from collections import Counter
from random import Random
from time import monotonic

import pytest

from tests.acceptance.fleet import Fleet, Process, free_port
from tests.waiting import eventually_sync

SLOTS, LOAD = 12, 18  # slots, and executions submitted between two kills


class Up:
    """A server with its worker in one process, on one file."""

    def __init__(self, folder):
        self.folder = folder
        self.began = folder / "began"
        self.began.mkdir()
        self.fleet = Fleet(folder, f"sqlite:///{folder}/horae.db")
        self.start()

    def start(self):
        port = free_port()
        args = ["up", "--data", str(self.folder), "--port", str(port), "--concurrency", str(SLOTS)]
        self.process = self.fleet.servers["up"] = Process(self.folder, "up", args, {})
        self.fleet.urls["up"] = url = f"http://127.0.0.1:{port}"
        eventually_sync(lambda: self.fleet.is_ready(url), within=60)

    def crash(self):
        self.process.kill()
        self.start()

    def job(self, then):
        """A job whose executions leave a file for each attempt."""
        begins = f"touch {self.began}/$HORAE_EXECUTION_ID.$HORAE_ATTEMPT; {then}"
        self.fleet.post("/jobs", {"name": "work", "command": ["sh", "-c", begins]})

    def submit(self, count):
        self.fleet.post("/executions", {"job": "work", "items": [{}] * count})

    def begun(self, attempt="*"):
        return len(list(self.began.glob(f"*.{attempt}")))

    def live(self):
        """Return whether any execution has not ended."""
        return any(self.fleet.get(f"/executions?limit=1&status={word}")["items"] for word in ("pending", "running"))

    def ends(self):
        """Count executions by final state."""
        found, cursor = Counter(), ""
        while True:
            page = self.fleet.get(f"/executions?limit=1000&cursor={cursor}" if cursor else "/executions?limit=1000")
            found.update((one["status"], one.get("reason") or "") for one in page["items"])
            if not (cursor := page.get("nextCursor")):
                return found


@pytest.fixture
def up(tmp_path):
    up = Up(tmp_path)
    yield up
    print(up.fleet.logs())
    up.fleet.close()


@pytest.mark.timeout(180)
def test_all_work_of_a_killed_process_restarts_together(up, tmp_path):
    up.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done")
    up.submit(SLOTS)
    eventually_sync(lambda: up.begun(1) == SLOTS, within=60)

    up.crash()
    eventually_sync(lambda: up.begun(2) == SLOTS, within=30)
    (tmp_path / "go").touch()
    eventually_sync(lambda: not up.live(), within=60)
    assert up.ends() == {("success", ""): SLOTS}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.prove)])
def test_repeated_kills_do_not_stop_work_or_mark_it_as_poison(up, kills):
    rng, count = Random(kills), 0
    up.job("exec sleep 1")
    began_at = monotonic()
    for _ in range(kills):
        up.submit(LOAD)
        count += LOAD
        until = up.begun() + rng.randint(1, 4 * SLOTS)
        eventually_sync(lambda: up.begun() >= until or not up.live(), within=120)  # noqa: B023
        up.crash()
    last = monotonic()

    eventually_sync(lambda: not up.live(), within=60)
    print(f"{kills} kills in {last - began_at:.0f} s, {count} executions, {up.begun()} attempts;", end=" ")
    print(f"all ended {monotonic() - last:.1f} s after the last was ready again")
    assert up.ends() == {("success", ""): count}
