"""The route of autoscaling signals."""

import pytest

from tests.server.conftest import Api
from tests.server.test_jobs import create

ROUTE = "/api/v1/autoscale/queues"


async def test_a_queue_reports_its_load_and_the_workers_it_needs(api: Api):
    await create(api)
    await api.post("/api/v1/executions", json={"job": "report", "items": [{}] * 25})

    told = (await api.get(f"{ROUTE}/default?targetWait=2s")).json()
    assert told["backlog"] == 25
    assert (told["running"], told["workers"], told["slots"], told["utilisation"]) == (0, 0, 0, 0.0)
    assert told["targetWait"] == "2s"
    assert told["desiredWorkers"] == 3  # the durations are unknown yet: one slot each, ten per worker
    assert (await api.get(f"{ROUTE}/default?slots=5")).json()["desiredWorkers"] == 5
    assert {"oldestAge", "arrivalRate", "serviceRate", "duration"} <= told.keys()


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("nowhere", 404, "nowhere"),
        ("default?targetWait=soon", 400, "soon"),
        ("default?targetWait=0s", 400, "targetWait"),
        ("default?slots=0", 400, "slots"),
    ],
)
async def test_invalid_values_are_refused(api: Api, path, status, words):
    answer = await api.get(f"{ROUTE}/{path}")

    assert answer.status_code == status
    assert words in answer.text
