"""The worker in JavaScript obeys every rule of docs/worker-protocol.md, with a scripted server."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.fleet_js import NodeProcess
from tests.examples.scripted import NOW, PARCEL, ScriptedServer, problem
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(60)
RULES = Path(__file__).with_name("rules.mjs")
SLOTS = 4


class Play:
    """A scripted server and the worker that talks to it."""

    def __init__(self, folder: Path, node: str) -> None:
        self.server, self._folder, self._node = ScriptedServer(), folder, node
        self.worker: NodeProcess | None = None

    def start(self, concurrency: int = SLOTS, **env: str) -> NodeProcess:
        env = {
            "HORAE_URL": self.server.url, "HORAE_KEY": "hk_a_b", "HORAE_CONCURRENCY": str(concurrency),
            "HORAE_DRAIN_GRACE": "1s", **env,
        }  # fmt: skip
        self.worker = NodeProcess(self._folder, "w", self._node, RULES, env)
        eventually_sync(lambda: self.server.waiting, within=20)
        return self.worker

    def close(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            print(self.worker.log.read_text())
        self.server.close()


@pytest.fixture
def play(node: str, tmp_path: Path) -> Iterator[Play]:
    play = Play(tmp_path, node)
    yield play
    play.close()


def has_outcome(up: dict[str, Any], item: int) -> bool:
    return any(one["lo"] == item and one["outcome"] == "success" for one in up.get("outcomes", ()))


@pytest.mark.parametrize("status", [400, 413])
def test_an_outcome_that_the_server_refuses_fails_alone(play: Play, status: int):
    play.server.refuse = lambda up: problem(status) if has_outcome(up, 2) else None
    play.start()
    play.server.grant("echo", 4)

    assert [play.server.outcome(item)["outcome"] for item in range(4)] == ["success", "success", "failed", "success"]
    error = play.server.outcome(2)["error"]
    assert (error["type"], error["permanent"], "no" in error["message"]) == ("OutcomeRefused", True, True)
    assert len(play.server.registrations) == 1


def test_an_outcome_that_is_named_by_its_index_is_repaired_at_once(play: Play):
    def refuse(up: dict[str, Any]) -> Any:
        at_fault = [i for i, one in enumerate(up.get("outcomes", ())) if has_outcome({"outcomes": [one]}, 2)]
        return problem(400, "outcome-refused", index=at_fault[0]) if at_fault else None

    play.server.refuse = refuse
    play.start()
    play.server.grant("echo", 4)

    assert [play.server.outcome(item)["outcome"] for item in range(4)] == ["success", "success", "failed", "success"]
    assert len(play.server.refused) == 1


@pytest.mark.parametrize(
    ("function", "type"),
    [("throws-strange", "Error"), ("throws-hidden", "Error"), ("throws-long", "N" * 512)],
    ids=["strange", "hidden", "long"],
)
def test_any_thrown_value_fails_only_its_execution(play: Play, function: str, type: str):
    play.start()
    play.server.grant(function)
    play.server.grant("brief", lo=1)
    assert play.server.outcome()["error"]["type"] == type
    assert play.server.outcome(1)["outcome"] == "success"
    assert len(play.server.registrations) == 1


def test_a_result_without_a_json_form_is_not_retried(play: Play):
    play.start()
    play.server.grant("cyclic")
    error = play.server.outcome()["error"]
    assert (error["type"], error["permanent"]) == ("BadResult", True)
    assert "circular" in error["message"]


def test_the_outcome_of_a_sensitive_job_is_marked(play: Play):
    play.start()
    play.server.grant("echo", sensitive=True)
    play.server.grant("echo", lo=1)
    play.server.grant("large", lo=2, sensitive=True)
    play.server.grant("large", lo=3)
    assert [play.server.outcome(item).get("sensitive") for item in (0, 1)] == [True, None]
    assert play.server.outcome(2)["error"]["type"] == "ResultTooLarge"
    assert play.server.outcome(3)["outcome"] == "success"


def test_a_rejected_promise_without_a_handler_does_no_harm(play: Play):
    play.start()
    play.server.grant("stray-promise")
    play.server.grant("brief", lo=1)
    assert [play.server.outcome(item)["outcome"] for item in (0, 1)] == ["success", "success"]
    assert not play.server.deleted


def test_after_a_stray_exception_running_items_finish_and_the_worker_leaves(play: Play):
    worker = play.start(HORAE_DRAIN_GRACE="30s")
    play.server.grant("brief")
    play.server.grant("stray-timer", lo=1)
    assert [play.server.outcome(item)["outcome"] for item in (0, 1)] == ["success", "success"]
    assert worker.wait(20) == 0
    assert play.server.deleted == ["/api/v1/sessions/s1"]


def test_a_new_key_is_read_from_its_file(play: Play, tmp_path: Path):
    file = tmp_path / "worker.key"
    file.write_text("hk_a_old\n")
    play.server.key = "hk_a_old"
    play.start(HORAE_KEY="", HORAE_KEY_FILE=str(file))
    file.write_text("hk_a_new\n")
    play.server.key = "hk_a_new"
    play.server.grant("echo")
    assert play.server.outcome()["outcome"] == "success"
    assert len(play.server.registrations) == 1


def test_a_refused_key_ends_the_worker_with_a_message(play: Play):
    worker = play.start()
    play.server.key = "hk_a_other"
    assert worker.wait(20) == 1
    assert worker.log.read_text().endswith("this worker cannot go on: no \n")


def test_a_worker_without_work_leaves_soon_when_no_server_answers(play: Play):
    worker = play.start(HORAE_DRAIN_GRACE="600s")
    play.server.refuse, play.server.goodbye = lambda up: problem(502), 502
    worker.signal(signal.SIGTERM)
    assert worker.wait(40) == 1


def test_a_message_of_progress_is_cut(play: Play):
    play.start()
    play.server.grant("long-progress")
    play.server.outcome()
    (told,) = [one for up in play.server.exchanges for one in up.get("progress", ())]
    assert len(told["message"]) == 1000


def test_a_log_line_that_the_server_refuses_is_replaced_alone(play: Play):
    def refuse(up: dict[str, Any]) -> Any:
        lines = [line[2] for log in up.get("logs", ()) for line in log["lines"]]
        return problem(413) if "three" in lines else None

    play.server.refuse = refuse
    play.start()
    play.server.grant("writes")

    assert play.server.outcome()["outcome"] == "success"
    assert [seq for seq, _ in play.server.lines()] == [0, 1, 2, 3]
    assert [text for _, text in play.server.lines()] == [
        "one", "two", "WARNING the server refused a line: no", "four",
    ]  # fmt: skip


def test_a_wrong_sequence_number_ends_the_session_and_no_log_is_cut(play: Play):
    play.start()
    play.server.refuse = lambda up: problem(400, "exchange-number") if len(play.server.registrations) < 2 else None
    eventually_sync(lambda: len(play.server.registrations) == 2)


def test_a_function_that_ignores_its_timeout_keeps_its_slot(play: Play):
    play.start(concurrency=1)
    play.server.grant("deaf-a-while", timeout=100_000)
    assert play.server.outcome()["error"] == {
        "type": "RunTimeout", "message": "longer than the job's timeout", "kind": "timeout",
    }  # fmt: skip

    play.server.grant("is-released", lo=1)
    assert play.server.outcome(1)["results"] == [True]


def test_a_silent_function_is_stopped(play: Play):
    play.start()
    play.server.grant("silent", timeouts={"heartbeat": 200_000})
    assert play.server.outcome()["error"]["type"] == "HeartbeatTimeout"


def test_heartbeats_of_a_function_keep_it_running_and_reach_the_server(play: Play):
    play.start()
    play.server.grant("lively", timeouts={"heartbeat": 600_000})
    assert play.server.outcome()["results"] == ["alive"]
    signs = [one for up in play.server.exchanges for one in up.get("progress", ()) if "percent" not in one]
    assert len(signs) >= 3


@pytest.mark.parametrize(
    ("kind", "type"),
    [("timeout", "RunTimeout"), ("heartbeatTimeout", "HeartbeatTimeout"), ("totalTimeout", "TotalTimeout")],
)
def test_a_stop_is_reported_with_the_kind_that_the_server_gave(play: Play, kind: str, type: str):
    play.start()
    play.server.grant("nap")
    eventually_sync(lambda: play.server.exchanges and any(up.get("started") for up in play.server.exchanges))
    play.server.ask("startTimeout")  # it has started
    eventually_sync(lambda: not play.server.news)
    play.server.ask("fromTheFuture")
    eventually_sync(lambda: not play.server.news)
    play.server.ask(kind)
    assert play.server.outcome()["error"]["type"] == type


def test_the_total_timeout_covers_all_attempts(play: Play):
    play.start()
    play.server.grant("nap", retry={"within": 500_000})
    play.server.grant("nap", lo=1, retry={"within": 500_000}, grant={"dueAt": NOW - 1_000_000})
    assert play.server.outcome(0)["error"]["type"] == "TotalTimeout"
    assert play.server.outcome(1)["error"]["type"] == "TotalTimeout"
    assert "startedAt" not in play.server.outcome(1)


def test_retry_after_is_respected(play: Play):
    asked_at: list[float] = []

    def refuse(up: dict[str, Any]) -> Any:
        if up.get("outcomes"):
            asked_at.append(time.monotonic())
        return (*problem(503, "busy")[:2], {"retry-after": "2"}) if up.get("outcomes") and len(asked_at) == 1 else None

    play.server.refuse = refuse
    play.start()
    play.server.grant("echo")
    assert play.server.outcome()["outcome"] == "success"
    assert asked_at[1] - asked_at[0] >= 2


def test_a_log_ends_at_its_limit_with_a_notice(play: Play):
    play.server.registered = {"logLimit": 1000}
    play.start()
    play.server.grant("floods")
    play.server.outcome()
    logs = [log for up in play.server.exchanges for log in up.get("logs", ())]
    lines = play.server.lines()
    assert sum(len(text.encode()) + 24 for _, text in lines) <= 1000
    assert [seq for seq, _ in lines] == list(range(len(lines)))
    left = logs[-1]["leftOut"]
    assert left == [200 - (len(lines) - 1), (200 - (len(lines) - 1)) * 34]
    assert f"{left[0]} lines were left out" in lines[-1][1]


def test_a_line_has_at_most_16_kib(play: Play):
    play.start()
    play.server.grant("wide")
    play.server.outcome()
    texts = [text for _, text in play.server.lines()]
    assert "".join(texts) == "\u20ac" * 10_000
    assert all(len(text.encode()) <= 16_384 for text in texts)


def test_a_start_is_reported_after_a_second(play: Play):
    play.server.registered = {"heartbeat": 5_000_000}
    play.start()
    play.server.grant("brief")
    play.server.grant("echo", lo=1)
    outcome = play.server.outcome()
    started = [one for up in play.server.exchanges for one in up.get("started", ())]
    assert [(one["lo"], one["at"]) for one in started] == [(0, outcome["startedAt"][0])]


def test_a_busy_worker_waits_for_updates_instead_of_polling(play: Play):
    play.server.registered = {"heartbeat": 5_000_000}
    play.start(concurrency=1)
    play.server.grant("nap")
    eventually_sync(lambda: [up for up in play.server.waiting if up["free"] == 0])
    (held,) = play.server.waiting
    assert held["wait"] == 5_000_000
    play.server.ask("cancel")
    assert play.server.outcome()["outcome"] == "cancelled"


def test_a_free_slot_waits_for_work(play: Play):
    play.server.registered = {"heartbeat": 600_000_000}
    play.start(concurrency=1)
    play.server.grant("deaf-a-while", timeout=100_000)
    play.server.outcome()
    eventually_sync(lambda: [up for up in play.server.waiting if up["free"] == 1])
    play.server.grant("echo", lo=1)
    assert play.server.outcome(1)["outcome"] == "success"


def test_closing_an_ended_session_is_no_error(play: Play):
    play.server.goodbye = 404
    worker = play.start()
    worker.signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert play.server.deleted == ["/api/v1/sessions/s1"]


def test_attempts_have_different_tokens(play: Play):
    play.start()
    play.server.grant("echo", attempt=1)
    play.server.grant("echo", attempt=2, lo=1)
    tokens = [play.server.outcome(item)["results"][0]["token"] for item in (0, 1)]
    assert tokens == [str((27_613_522 << 32) + 1), str((27_613_522 << 32) + 2)]


def test_it_speaks_protocol_2_and_counts_slots(play: Play):
    play.start(concurrency=2)
    assert play.server.registrations[0]["protocol"] == 2
    play.server.grant("nap", slots=2)
    eventually_sync(lambda: play.server.waiting and all(up["free"] == 0 for up in play.server.waiting))


def test_items_without_params_are_not_started(play: Play):
    play.start()
    play.server.grant("echo", grant={"problem": "the key is missing", "items": []})
    outcome = play.server.outcome()
    assert (outcome["parcel"], outcome["error"]["kind"]) == (PARCEL, "platform")
    assert outcome["error"]["type"] == "ParamsUnavailable"


def test_a_server_of_another_installation_is_not_used_again_and_no_outcome_is_lost(play: Play):
    asked: list[dict[str, Any]] = []

    def refuse(up: dict[str, Any]) -> Any:
        if up.get("outcomes"):
            asked.append(up)
        return problem(421, "misdirected") if up.get("outcomes") and len(asked) == 1 else None

    play.server.registered, play.server.refuse = {"installation": "mine"}, refuse
    play.start()
    play.server.grant("echo")
    assert play.server.outcome()["outcome"] == "success"
    assert (len(play.server.registrations), play.server.installations[0]) == (1, None)
    assert set(play.server.installations[1:]) == {"mine"}
