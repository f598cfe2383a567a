"""`horae queues`: holds, windows, waits and lists, and the exit codes."""

import json

from horae.errors import NotFound
from tests.cli.fake_api import FakeApi, page, run

HOLD = {
    "holdId": "h1", "queue": "reports", "calendar": None, "state": "active", "reason": "deploy-123",
    "from": "2027-01-15T08:00:00Z", "until": "2027-01-15T08:30:00Z", "drain": False, "running": 2,
    "createdAt": "2027-01-15T08:00:00Z", "createdBy": "key:1", "endedAt": None, "endedBy": None,
}  # fmt: skip
WINDOW = {**HOLD, "holdId": "h2", "queue": None, "calendar": "nights", "reason": "", "state": "planned"}


def test_a_queue_is_held_with_the_given_options():
    api = FakeApi({"POST /queues/reports/hold": HOLD})
    result = run(api, "queues", "hold", "reports", "--for", "30m", "--reason", "deploy-123", "--drain")

    assert result.stdout == "Queue reports is held until 2027-01-15T08:30:00Z; 2 running.\n"
    assert api.requests[0].body == {"for": "30m", "reason": "deploy-123", "drain": True}
    assert json.loads(run(api, "queues", "hold", "reports", "--for", "30m", "-o", "json").stdout) == HOLD


def test_all_queues_are_held_until_an_instant():
    api = FakeApi({"POST /holds": {**HOLD, "queue": None, "state": "planned"}})
    result = run(
        api, "queues", "hold", "--all", "--from", "2027-01-15T08:00:00Z", "--until", "2027-01-15T08:30:00Z"
    )  # fmt: skip

    assert "All queues are held from 2027-01-15T08:00:00Z until 2027-01-15T08:30:00Z" in result.stdout
    assert api.requests[0].body == {"from": "2027-01-15T08:00:00Z", "until": "2027-01-15T08:30:00Z"}


def test_a_hold_needs_a_queue_or_all():
    for more in ((), ("reports", "--all")):
        result = run(FakeApi({}), "queues", "hold", *more, "--for", "30m")
        assert (result.exit_code, "Name a queue, or give --all." in result.stderr) == (2, True)


def test_a_wait_ends_when_nothing_runs_and_shows_its_progress():
    left = iter([3, 3, 1, 0])
    api = FakeApi({
        "POST /queues/reports/hold": HOLD, "GET /holds": lambda request: page({**HOLD, "running": next(left)}),
    })  # fmt: skip
    result = run(api, "queues", "hold", "reports", "--for", "30m", "--drain", "--wait")

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [f"queue reports: {count} running" for count in (3, 1, 0)]
    assert result.stdout == "Queue reports is drained and held until 2027-01-15T08:30:00Z; 0 running.\n"


def test_a_wait_fails_when_the_hold_ends_before_or_after_a_timeout():
    api = FakeApi({"POST /queues/reports/hold": HOLD, "GET /holds": page({**HOLD, "state": "ended"})})
    result = run(api, "queues", "hold", "reports", "--for", "30m", "--wait")
    assert (result.exit_code, "The hold ended before all running executions ended." in result.stderr) == (4, True)

    api = FakeApi({"POST /queues/reports/hold": HOLD, "GET /holds": page(HOLD)})
    result = run(api, "queues", "hold", "reports", "--for", "30m", "--wait", "--timeout", "5s")
    assert (result.exit_code, "has not ended after 5s" in result.stderr) == (1, True)


def test_a_release_shows_its_result():
    done = {"released": [HOLD], "remaining": [], "note": "1 hold released."}
    api = FakeApi({"DELETE /queues/reports/hold": done, "DELETE /holds": done})

    assert run(api, "queues", "release", "reports", "--reason", "deploy-123").stdout == "1 hold released.\n"
    assert api.requests[0].query == {"reason": "deploy-123"}
    assert json.loads(run(api, "queues", "release", "--all", "-o", "json").stdout) == done


def test_an_unknown_queue_is_not_found():
    api = FakeApi({"DELETE /queues/report/hold": NotFound('No queue named "report".', 'Did you mean "reports"?')})
    result = run(api, "queues", "release", "report")
    assert (result.exit_code, "reports" in result.stderr) == (3, True)


def test_holds_and_windows_are_listed():
    api = FakeApi({"GET /holds": page(HOLD, WINDOW)})
    table = run(api, "queues", "holds").stdout
    for part in ("reports", "deploy-123", "(all)", "nights", "planned", "key:1"):
        assert part in table
    ended = run(api, "queues", "holds", "reports", "--ended").stdout
    assert "ENDED BY" in ended
    assert api.requests[-1].query == {"queue": "reports", "ended": "true"}
    assert "There are no holds." in run(FakeApi({"GET /holds": page()}), "queues", "holds").stdout


def test_queues_show_their_holds():
    queue = {
        "name": "reports", "policy": {"kind": "priority"}, "state": "held", "queued": 7, "running": 2, "lanes": [],
        "holds": [HOLD, {**WINDOW, "until": None}],
    }  # fmt: skip
    table = run(FakeApi({"GET /queues": page(queue)}), "queues", "list").stdout
    for part in ("held", "deploy-123", "window nights"):
        assert part in table


QUEUE = {
    "name": "reports", "policy": {"kind": "fifo"}, "state": "active", "queued": 7, "running": 2, "lanes": [],
    "concurrency": 3, "maxQueued": 1000, "preempts": True, "holds": [],
}  # fmt: skip


def test_a_queue_shows_its_policy_and_limits():
    shown = run(FakeApi({"GET /queues/reports": QUEUE}), "queues", "show", "reports").stdout
    assert shown.splitlines()[1:] == [
        "Policy: fifo", "Executions of this queue may preempt preemptible executions.",
        "Limits: concurrency 3, maxQueued 1,000",
    ]  # fmt: skip


def test_a_window_is_attached_and_removed():
    api = FakeApi({
        "PUT /windows/nights": WINDOW, "PUT /queues/reports/windows/nights": WINDOW,
        "DELETE /queues/reports/windows/nights": None,
    })  # fmt: skip
    result = run(api, "queues", "window", "--all", "--calendar", "nights", "--reason", "backup", "--drain")
    assert "All queues are held from 2027-01-15T08:00:00Z until 2027-01-15T08:30:00Z" in result.stdout
    assert api.requests[0].body == {"reason": "backup", "drain": True}
    run(api, "queues", "window", "reports", "--calendar", "nights")
    assert api.requests[1].line == "PUT /queues/reports/windows/nights"
    result = run(api, "queues", "window", "reports", "--calendar", "nights", "--remove")
    assert result.stdout == "Calendar nights no longer holds queue reports.\n"


def test_a_queue_is_defined_by_options_and_limits_are_removed():
    api = FakeApi({"PATCH /queues/reports": QUEUE})
    fair = "--policy fair --by ${params.customer} --weight acme=5 --reserve b=25% --reserve c=4 --default-weight 2"
    run(api, "queues", "set", "reports", *fair.split())
    limits, back = (
        "--concurrency none --rate none --max-queued 7 --no-sequence",
        "--unset policy --unset burst --preempts",
    )
    run(api, "queues", "set", "reports", *limits.split())
    run(api, "queues", "set", "reports", *back.split())
    run(api, "queues", "set", "reports", "--policy", '{"kind": "fair"}')
    assert [one.body for one in api.requests] == [
        {
            "policy": {
                "kind": "fair", "by": "${params.customer}", "weights": {"acme": 5}, "defaultWeight": 2.0,
                "reserve": {"b": "25%", "c": 4},
            }
        },
        {"concurrency": None, "rate": None, "maxQueued": 7, "sequence": False},
        {"policy": None, "burst": None, "preempts": True},
        {"policy": {"kind": "fair"}},
    ]  # fmt: skip


def test_options_of_a_policy_that_is_not_named_are_refused():
    for said in ("--ageing 5s", '--policy {"kind":"fair"} --by job', "", "--concurrency 0", "--unset colour"):
        assert run(FakeApi({}), "queues", "set", "reports", *said.split()).exit_code == 2
