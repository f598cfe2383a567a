"""The examples of workflows: one `horae up` runs them all, with the commands of the README."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.cli.test_up import Up, running
from tests.examples.test_examples import EXAMPLES

TOGETHER = """
from horae import App

import daily_sales, order_saga, tuning, tutorial_etl

app = App()
for one in (daily_sales.app, order_saga.app, tuning.app, tutorial_etl.app):
    app.jobs |= one.jobs
    app.workflows |= one.workflows
"""
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def up(tmp_path_factory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.db*", "__pycache__"))
    (folder / "together.py").write_text(TOGETHER)
    with running(folder, "--app", "together:app") as started:
        for name in ("order_saga.yaml", "tuning.yaml"):
            started.run("apply", "-f", str(folder / name))
        yield started


def ran(up: Up, job: str, *params: str, code: int = 0) -> Any:
    """Run one execution to its end."""
    options = [part for param in params for part in ("--param", param)]
    return up.json("jobs", "trigger", job, "--wait", *options, code=code)


def states(up: Up, execution: Any) -> dict[str, str]:
    """Return the states of an execution's steps."""
    graph = up.json("executions", "graph", execution["executionId"])
    return {node["step"]: node["status"] for node in graph["nodes"]}


def rows(up: Up, database: str, sql: str) -> list[Any]:
    with closing(sqlite3.connect(up.folder / database)) as connection:
        return connection.execute(sql).fetchall()


def test_the_tutorial_passes_results_from_step_to_step(up):
    done = ran(up, "tutorial-etl")
    assert (done["status"], done["result"]) == ("success", {"total": 1236.7})
    graph = up.json("executions", "graph", done["executionId"])
    assert graph["criticalPath"] == ["tutorial-extract", "tutorial-transform", "tutorial-load"]
    load = graph["nodes"][-1]["executionId"]
    assert "Total order value is: 1236.70" in up.run("executions", "logs", load).stdout


def book(up: Up, order: int) -> list[str]:
    return [what for (what,) in rows(up, "orders.db", f"SELECT what FROM book WHERE number = {order} ORDER BY n")]


def test_a_failed_order_is_undone_in_reverse_order(up):
    assert ran(up, "order", "order=1")["status"] == "success"
    far = ran(up, "order", "order=2", "address=the moon", code=1)
    nameless = ran(up, "order", "order=3", "mail=nobody", code=1)

    shipped = ["reserved lamp", "charged 19.9", "shipped to 12 Main Street"]
    undone = ["refunded payment-3", "released lamp", "mailed order 3: nobody is not an address."]
    assert book(up, 1) == [*shipped, "mailed your parcel-1 is on its way"]
    assert book(up, 2)[:2] == shipped[:2]
    assert book(up, 2)[2:] == [
        "refunded payment-2",
        "released lamp",
        "mailed order 2: No carrier delivers to the moon.",
    ]
    assert book(up, 3) == [*shipped, "recalled parcel-3", *undone]
    assert (far["status"], far["errorMessage"]) == ("failed", "No carrier delivers to the moon.")
    assert nameless["errorMessage"] == "nobody is not an address."
    by_state: dict[str, set[str]] = {}
    for step, state in states(up, far).items():
        by_state.setdefault(state, set()).add(step)
    assert by_state == {
        "success": {"reserve", "charge", "reserve:undo", "charge:undo", "apologize"},
        "failed": {"ship"},
        "skipped": {"confirm"},
    }


def test_each_item_of_a_foreach_is_a_workflow_with_a_foreach_inside(up):
    done = ran(up, "find-model")
    assert (done["status"], done["result"]) == ("success", {"rate": 0.1, "rounds": 20, "error": 0.0403})
    graph = up.json("executions", "graph", done["executionId"])
    items = {node["step"]: node.get("items") for node in graph["nodes"]}
    assert items == {"grid": None, "try": {"total": 8, "success": 6, "failed": 2, "remaining": 0}, "choose": None}

    tried = up.json("executions", "list", "--job", "try-model")["items"]
    assert {one["parent"] for one in tried} == {done["executionId"]}
    assert [one["params"]["rate"] for one in tried if one["status"] == "failed"] == [1.0, 1.0]
    best = next(one for one in tried if one["params"] == {"rate": 0.1, "rounds": 20})
    assert states(up, best) == {"fit": "success", "mean": "success"}


def test_a_week_is_backfilled_with_a_day_for_each_execution(up):
    week = ("--from", "2025-06-03T00:00:00Z", "--to", "2025-06-10T00:00:00Z")
    done = up.json("backfills", "create", "daily-sales", *week, "--wait")
    again = up.json("backfills", "create", "daily-sales", *week, "--wait")
    assert (done["succeeded"], again["started"], again["alreadyRan"]) == (7, 0, 7)

    days = [f"2025-06-{day:02}T00:00:00Z" for day in range(2, 10)]
    runs = up.json("executions", "list", "--job", "daily-sales")["items"]
    found = {one["interval"]["start"]: one for one in runs if one["backfillId"] == done["backfillId"]}
    assert sorted(found) == days[:-1]
    assert [found[day]["interval"]["end"] for day in days[:-1]] == days[1:]
    assert found[days[0]]["result"] == {"day": days[0], "sums": {"north": 40.0, "south": 89.0}}
    sunday = {"sales-extract": "success", "sales-transform": "success", "sales-load": "skipped"}
    assert states(up, found[days[6]]) == sunday

    assert rows(up, "sales.db", "SELECT day, sum(total) FROM sales WHERE day > '2025-06-01' GROUP BY day") == [
        *(("2025-06-02", 129.0), ("2025-06-03", 249.0), ("2025-06-04", 237.7), ("2025-06-05", 356.0)),
        *(("2025-06-06", 59.7), ("2025-06-07", 338.0)),
    ]


def test_a_day_is_run_by_hand(up):
    nothing = ran(up, "daily-sales", code=1)
    assert nothing["errorMessage"] == 'Step "sales-extract": ${execution.interval.start}: execution.interval is null.'
    day = "2025-06-01T00:00:00Z/2025-06-02T00:00:00Z"
    done = up.json("jobs", "trigger", "daily-sales", "--interval", day, "--wait")
    assert done["result"] == {"day": "2025-06-01T00:00:00Z", "sums": {"north": 12.0}}
