"""`make bench-peers`, without running peers: their descriptions, the measurement, and the page."""

import ast
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.waiting import eventually_sync
from tools.peers import __main__ as command
from tools.peers import peer as peers
from tools.peers import rounds
from tools.peers.environment import Environment, installed, interpreter
from tools.peers.peer import FOLDER, Case, Peer, PeerError
from tools.peers.queues import QUEUES, peer_of, queues
from tools.peers.report import Circumstances, lines, page
from tools.peers.rounds import Run, Subject, horae_run, measured
from tools.peers.services import SERVICES, Service

PINNED = re.compile(r"[\w.-]+==[\w.!+]+")
AROUND = Circumstances(command="make bench-peers", at="now", commit="abc", machine={"cores": 2}, services="Redis 1")

APP = """
import sys, tally
def prepare(): open("submitted", "w").close()
def bulk(count): open("submitted", "a").write("." * count)
def singles(count, clients): bulk(count)
def left(count): return len(open("submitted").read()) - tally.count()
if __name__ == "__main__":
    if sys.argv[1:]: sys.exit(f"no work at {sys.argv[1]}")
    for _ in open("submitted").read(): tally.tick()
"""


def subject(system: str, case: str, *drains: float, store: str = "Redis", **figures: float) -> Subject:
    return Subject(
        system=system, case=case, store=store, durability="on disk", results="kept", settings="2 processes",
        version="1.0", jobs=1_000, clients=4, measure=lambda host: Run(drain=1),
        runs=[Run(drain=drain, **figures) for drain in drains],
    )  # fmt: skip


HORAE = subject("Horae", "PostgreSQL", 70_000, 80_000, 90_000, store="PostgreSQL", drain_singles=16_000, single=4_000)


@pytest.mark.parametrize("name", [*QUEUES, "redis"])
def test_an_environment_is_pinned_completely(name):
    wanted = (FOLDER / name / "requirements.txt").read_text().split()

    assert wanted
    assert [line for line in wanted if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize("name", QUEUES)
def test_a_peer_describes_itself_and_can_be_driven(name):
    peer = peer_of(name)
    tree = ast.parse((peer.folder / "app.py").read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

    assert peer.name == name
    assert peer.version
    assert len({case.name for case in peer.cases}) == len(peer.cases) > 0
    assert functions >= {"singles", "left"}
    for case in peer.cases:
        assert case.service in SERVICES
        assert case.settings
        assert case.results
        assert ("bulk" in functions) == bool(case.bulk)


def test_every_folder_of_a_peer_is_in_the_list():
    assert {path.parent.name for path in FOLDER.glob("*/app.py")} == set(QUEUES)


def test_peers_are_chosen_by_name():
    assert [peer.name for peer in queues(["huey", "celery"], [])] == ["celery", "huey"]
    assert "rq" not in [peer.name for peer in queues([], ["rq"])]


def test_without_an_index_a_peer_is_skipped_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(PeerError, match=r"huey could not be installed from the package index: .+ --without huey"):
        installed(FOLDER / "huey", root=tmp_path)


def test_without_a_new_enough_python_a_peer_names_the_version():
    with pytest.raises(PeerError, match=r"oban needs Python 3\.99 or newer, and there is none here: put python3\.99"):
        interpreter("oban", (3, 99))


def test_without_peers_no_measurement_is_made(monkeypatch, capsys):
    def refuse(*_: object) -> Environment:
        raise PeerError("no index")

    monkeypatch.setattr(rounds, "installed", refuse)

    assert command.main(["--only", "huey"]) == 1
    assert capsys.readouterr().err.endswith("There is no peer to compare Horae with.\nno index\n")


@pytest.fixture
def small_peer(tmp_path, monkeypatch):
    """Create a peer of a few lines in the present environment."""
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "app.py").write_text(APP)
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    monkeypatch.setitem(SERVICES, "none", Service("nothing", "none", lambda host: nullcontext("nowhere://")))
    worker = ("python", "-m", "app")
    case = Case(
        name="only", service="none", results="none", settings="none", worker=worker, bulk=300, singles=20, clients=1
    )
    return Peer(name="small", title="Small", package="small", cases=(case,))


def test_a_peer_is_submitted_to_and_then_drained(small_peer):
    run = measured(small_peer, small_peer.cases[0], Environment(Path(sys.prefix)), host=None)

    assert run.drain >= 0
    assert run.bulk > 0
    assert run.single > 0


def test_a_failed_worker_is_reported_with_its_output(small_peer):
    case = replace(small_peer.cases[0], worker=("python", "-m", "app", "{url}"))

    with pytest.raises(PeerError, match="worker: no work at nowhere://"):
        measured(small_peer, case, Environment(Path(sys.prefix)), host=None)


def test_a_system_that_fails_is_left_out_from_then_on():
    def fail(host: object) -> Run:
        raise PeerError("broken")

    good, bad = subject("Good", "a"), replace(subject("Bad", "b"), measure=fail)

    told = [(number, each.name) for number, each in rounds.rounds([good, bad], 2, host=None)]

    assert told == [(1, "Good a"), (1, "Bad b"), (2, "Good a")]
    assert (len(good.runs), bad.failure) == (2, "broken")


def test_figures_of_horae_are_read_by_store():
    found = {
        ("sqlite drain", "executions"): 9.0, ("sqlite parcels of one", "executions"): 5.0,
        ("sqlite SDK", "submissions"): 7.0, ("sqlite bulk", "submissions"): 8.0, ("sqlite single", "submissions"): 2.0,
    }  # fmt: skip

    assert horae_run("sqlite", found) == Run(drain=9, drain_singles=5, bulk=7, single=2)


def test_the_page_compares_medians_with_horae_on_postgresql():
    fast = subject("Fast", "batches", 9_000, 8_000, 7_000, store="PostgreSQL", bulk=20_000, single=500)
    text = page([HORAE, fast], AROUND)

    assert "| Horae | PostgreSQL, one by one | PostgreSQL | kept | 16,000 | 16,000, 16,000, 16,000 |  |  |" in text
    assert "| Fast | batches | PostgreSQL | kept | 8,000 | 9,000, 8,000, 7,000 | 10x | 2x |" in text
    assert "| Fast | batches | PostgreSQL | 20,000 | 500 | 4 |" in text
    assert "| Horae | PostgreSQL | PostgreSQL | none | 4,000 | 4 |" in text
    assert "- at least 4 times the fastest peer on PostgreSQL: 10x (Fast batches), reached" in text
    assert text.endswith("|\n")


def test_the_page_shows_missed_targets_and_missing_measurements():
    celery = subject("Celery", "prefork, results", 1_000)
    gone = replace(subject("Gone", "x"), failure="no index")
    text = page([HORAE, celery, gone], AROUND)

    assert "- at least 100 times Celery with Redis (prefork, results stored): 80x" in text
    assert "(Celery prefork, results), **missed**" in text
    assert text.endswith("## What could not be measured\n\n- Gone x: no index\n")


def test_a_small_run_is_not_compared_with_targets():
    assert "Asked of Horae" not in page([HORAE, subject("Celery", "prefork, results", 1)], replace(AROUND, share=0.1))


def test_processes_end_even_if_their_starter_is_killed():
    code = (
        "from tools.peers.leash import TiedProcess;"
        "print(TiedProcess(['sleep', '600']).process.pid, flush=True); input()"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with starter:
        pid = int(starter.stdout.readline())
        assert psutil.pid_exists(pid)
        starter.kill()

    eventually_sync(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_every_figure_is_a_line_with_its_circumstances():
    found = lines([HORAE], AROUND)

    assert [(line.case, line.metric, line.value) for line in found] == [
        ("Horae PostgreSQL", "drain", 80_000),
        ("Horae PostgreSQL", "drain_singles", 16_000),
        ("Horae PostgreSQL", "single", 4_000),
    ]
    assert found[0].settings["runs"] == [70_000, 80_000, 90_000]
    assert found[0].settings["durability"] == "on disk"
