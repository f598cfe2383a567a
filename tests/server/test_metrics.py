"""Metrics of a server's answers and services."""

import asyncio

from prometheus_client import CollectorRegistry, generate_latest

from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock
from horae.features.alerts.part import AlertsPart
from horae.model.fleet.protocol import Failure
from horae.server.metrics.families import counts_by_name, limit_series
from horae.server.metrics.traffic import RequestMetrics
from tests.server.conftest import Api, Connect
from tests.server.working import HandWorker, outcome


def test_answers_are_counted_by_route_and_status_and_timed_by_route():
    answers, registry = RequestMetrics(), CollectorRegistry()
    registry.register(answers)
    for status, seconds in ((200, 0.001), (200, 0.0015), (404, 30.0)):
        answers.add("jobs.get", status, seconds)

    lines = generate_latest(registry).decode().splitlines()

    assert 'horae_http_requests_total{route="jobs.get",status="200"} 2.0' in lines
    assert 'horae_http_requests_total{route="jobs.get",status="404"} 1.0' in lines
    for bound, count in (("0.001", 1), ("0.002", 2), ("10.0", 2), ("+Inf", 3)):
        assert f'horae_http_request_seconds_bucket{{le="{bound}",route="jobs.get"}} {count}.0' in lines
    assert 'horae_http_request_seconds_count{route="jobs.get"} 3.0' in lines
    assert 'horae_http_request_seconds_sum{route="jobs.get"} 30.0025' in lines


async def test_metrics_report_replays_pauses_and_repairs(api: Api, node: ServerNode):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    made = await api.post("/api/v1/dlq/replays", json={"filter": {"job": "pay"}, "rate": "1/1h"})
    assert made.status_code == 201, made.text
    node.firing.streaks.paused, node.admission.limit_reconciler.repaired = 2, 3

    told = (await api.get("/metrics")).text

    assert 'horae_replays{namespace="default",state="running"} 1.0' in told
    assert "horae_replayed_executions_total 0.0" in told
    assert "horae_automatic_pauses_total 2.0" in told
    assert "horae_missed_admissions_total 3.0" in told
    assert "horae_preempted_executions_total 0.0" in told


async def test_metrics_report_all_namespaces_by_name_to_permitted_keys_only(
    api: Api, connect: Connect, node: ServerNode
):
    await api.post("/api/v1/namespaces", json={"name": "billing"})
    there = {"horae-namespace": "billing"}
    for headers, count in (({}, 1), (there, 2)):
        await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"}, headers=headers)
        for _ in range(count):
            await api.post("/api/v1/executions", json={"job": "pay"}, headers=headers)
    await api.post("/api/v1/queues/default/hold", json={"for": "1h"}, headers=there)
    answers = await asyncio.gather(*(api.get("/metrics") for _ in range(3)))
    for told in (answer.text for answer in answers):
        assert 'horae_queued_executions{namespace="default",queue="default"} 1.0' in told
        assert 'horae_queued_executions{namespace="billing",queue="default"} 2.0' in told
        assert 'horae_held_queues{namespace="billing",queue="default"} 1.0' in told
        assert 'horae_held_queues{namespace="default"' not in told
    key = (await api.post("/api/v1/keys", json={"name": "a", "role": "admin"}, headers=there)).json()["key"]
    assert (await connect(authorization=f"Bearer {key}").get("/metrics")).status_code == 403


def told(text: str) -> dict[str, float]:
    """Parse the samples of an exposition."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


async def test_metrics_follow_executions_from_their_submission_to_their_end(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock
):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true", "retries": 1})
    for _ in range(2):
        await api.post("/api/v1/executions", json={"job": "pay", "key": "once"})
    clock.advance(3 * SECOND)
    before = told((await api.get("/metrics")).text)
    hand = await HandWorker.register(worker)
    first = await hand.take()
    clock.advance(2 * SECOND)
    await hand.report(first, error=Failure(type="RunTimeout", kind="timeout"))
    clock.advance(3600 * SECOND)
    await node.work.promoter.step()
    second = await hand.take()
    busy = told((await api.get("/metrics")).text)
    clock.advance(20 * SECOND)
    await hand.report(second)
    await hand.report(second)

    after = told((await api.get("/metrics")).text)

    assert before['horae_oldest_queued_seconds{namespace="default",queue="default"}'] == 3
    assert busy['horae_worker_slots{namespace="default",state="busy"}'] == 1
    assert busy['horae_worker_slots{namespace="default",state="idle"}'] == 1
    for name, value in {
        "horae_submitted_executions_total": 1,
        "horae_deduplicated_executions_total": 1,
        "horae_queue_wait_seconds_count": 2,
        'horae_claims_total{result="granted"}': 2,
        "horae_retries_started_total": 1,
        'horae_failed_attempts_total{class="timeout"}': 1,
        'horae_failed_attempts_total{class="job"}': 0,
        "horae_stale_reports_total": 1,
        "horae_exchange_granted_executions_sum": 2,
        "horae_exchange_reported_executions_count": 3,
        "horae_retries_scheduled_total": 1,
        'horae_ended_executions_total{outcome="success"}': 1,
        'horae_execution_seconds_sum{outcome="success"}': 20,
        'horae_execution_seconds_bucket{le="30.0",outcome="success"}': 1,
        'horae_group_commit_size_count{kind="submit"}': 2,
        "horae_store_epoch": 1,
    }.items():
        assert (name, after[name]) == (name, value)
    assert after['horae_store_operation_seconds_count{operation="exchange"}'] >= 5
    assert after["horae_exchange_answer_bytes_total"] > 0
    assert [name for name in after if name.startswith("horae_build_info{") and 'store="sqlite"' in name]


async def test_reports_of_a_lost_worker_are_counted_as_stale_and_repetitions_are_not(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock
):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    await api.post("/api/v1/executions", json={"job": "pay", "items": [{}, {}]})
    hand = await HandWorker.register(worker)
    first, second = (await hand.take(1))[0], (await hand.take(1))[0]
    await hand.report([first])
    hand.repeat()
    await hand.report([first])
    assert told((await api.get("/metrics")).text)["horae_stale_reports_total"] == 0
    for _ in range(20):
        await node.fleet.rescuer.step()
        clock.advance(3 * SECOND)

    answer = await hand.send(outcomes=[outcome(second)])

    assert answer.status_code == 409
    assert told((await api.get("/metrics")).text)["horae_stale_reports_total"] == 1
    hand.session = node.env.new_id()
    assert (await hand.send(outcomes=[outcome(second)])).status_code == 404
    assert told((await api.get("/metrics")).text)["horae_stale_reports_total"] == 2


async def test_empty_metrics_are_reported_as_zero(api: Api, node: ServerNode):
    await api.put("/api/v1/queues/slow", json={"concurrency": 3})

    after = told((await api.get("/metrics")).text)

    for queue in ("default", "slow"):
        assert after[f'horae_queued_executions{{namespace="default",queue="{queue}"}}'] == 0
        assert after[f'horae_oldest_queued_seconds{{namespace="default",queue="{queue}"}}'] == 0
    assert after['horae_workers{namespace="default",status="live"}'] == 0
    assert after['horae_dead_letters_total{namespace="default"}'] == 0


def test_counters_by_namespace_are_bounded_and_never_go_down():
    counts, names = {1: 5.0, 2: 1.0, 4: 2.0}, {1: "a", 3: "c", 4: "d"}
    assert counts_by_name(counts, names, most=2) == {"a": 5, "c": 0, "(others)": 2}
    counts[4] += 90
    assert counts_by_name(counts, names | {2: "b"}, most=2) == {"a": 5, "c": 0, "(others)": 93}
    assert counts_by_name(counts, {1: "a", 2: "a"}, most=2) == {"a": 6}


async def test_metrics_report_late_fires_dead_letters_and_limits(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock
):
    await api.put("/api/v1/queues/slow", json={"concurrency": 3})
    await api.post("/api/v1/jobs", json={"name": "tick", "command": "true", "schedule": "* * * * *", "queue": "slow"})
    await api.post("/api/v1/jobs/tick/trigger")
    clock.advance(61 * SECOND - clock.now() % (60 * SECOND))
    await node.firing.scheduler.step()
    hand = await HandWorker.register(worker, queues=["slow"])
    grants = await hand.take()
    held = told((await api.get("/metrics")).text)
    await hand.report(grants, error=Failure(type="Bad", permanent=True))

    after = told((await api.get("/metrics")).text)

    assert held['horae_limit_used{namespace="default",queue="slow"}'] == 2
    assert held['horae_limit_size{namespace="default",queue="slow"}'] == 3
    assert after["horae_fired_executions_total"] == after["horae_schedule_lag_seconds_count"] == 1
    assert after["horae_schedule_lag_seconds_sum"] == 1
    assert after['horae_dead_letters_total{namespace="default"}'] == 2
    assert after['horae_failed_attempts_total{class="job"}'] == 2


def test_names_of_users_make_a_limited_number_of_series():
    queues = {("default", f"q{i}"): float(i) for i in range(10)}

    assert limit_series(queues, 2, most=10) == queues
    kept = limit_series(queues, 2, most=3)
    assert kept == {("default", "q9"): 9, ("default", "q8"): 8, ("default", "q7"): 7, ("(others)", "(others)"): 21}
    circuits = {("default", f"j{i}", state): 1.0 for i in range(3) for state in ("open", "half-open")}
    assert limit_series(circuits, 2, most=1)["(others)", "(others)", "half-open"] == 3
    assert limit_series(queues, 2, most=9, combine=max)["(others)", "(others)"] == 0
    least = {own: -value for own, value in queues.items()}
    assert limit_series(queues, 2, most=1, sort_values=least) == {("default", "q0"): 0, ("(others)", "(others)"): 45}


async def test_metrics_report_alerts_and_their_notifications(api: Api, node: ServerNode, clock: VirtualClock):
    rule = {"name": "old", "kind": "queue-age", "after": "1m", "severity": "critical"}
    assert (await api.post("/api/v1/alert-rules", json=rule)).status_code == 201
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    await api.post("/api/v1/executions", json={"job": "pay"})
    clock.advance(300 * SECOND)
    await node.part(AlertsPart).watch.step()

    after = told((await api.get("/metrics")).text)

    assert after['horae_alerts{namespace="default",severity="critical"}'] == 1
    assert after['horae_alert_changes_total{state="firing"}'] == 1
    assert after['horae_alert_notices_total{outcome="failed"}'] == 0
    assert after["horae_alert_evaluations_failed_total"] == 0
