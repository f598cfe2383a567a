"""What a server counts of its own answers and of what its services do."""

import asyncio

from prometheus_client import CollectorRegistry, generate_latest

from horae.engine.node import Node
from horae.server.metrics import Answers
from tests.server.conftest import Api, Connect


def test_answers_are_counted_by_route_and_status_and_timed_by_route():
    answers, registry = Answers(), CollectorRegistry()
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


async def test_metrics_tell_of_replays_pauses_and_repairs(api: Api, node: Node):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    made = await api.post("/api/v1/dlq/replays", json={"filter": {"job": "pay"}, "rate": "1/1h"})
    assert made.status_code == 201, made.text
    node.streaks.paused, node.limits.repaired = 2, 3

    told = (await api.get("/metrics")).text

    assert 'horae_replays{namespace="default",state="running"} 1.0' in told
    assert "horae_replayed_executions_total 0.0" in told
    assert "horae_automatic_pauses_total 2.0" in told
    assert "horae_limit_repairs_total 3.0" in told
    assert "horae_preempted_executions_total 0.0" in told


async def test_metrics_tell_of_all_namespaces_by_name_and_only_to_who_may_see_all(
    api: Api, connect: Connect, node: Node
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
