"""The options of `horae jobs create` and `horae worker` for the placement of executions."""

import pytest

from horae.cli.fleet.worker import worker_settings
from horae.config.load import load
from horae.errors import BadInput
from tests.cli.fake_api import FakeApi, run

JOB = {"jobId": "0190-1", "name": "train", "version": 1, "notes": ["No worker has ever had gpu."]}


def test_create_sends_the_placement():
    api = FakeApi({"POST /jobs": JOB})
    result = run(
        api, "jobs", "create", "train", "--command", "true", "--need", "gpu", "--slots", "4",
        "--prefer", "zone=eu,weight=2,patience=30s", "--prefer", "ssd", "--resource", "memory=8GiB",
        "--affinity", "${params.a},${params.b},patience=1m", "--spread",
    )  # fmt: skip

    assert api.requests[0].body == {
        "name": "train",
        "command": "true",
        "needs": ["gpu"],
        "prefers": [{"label": "zone=eu", "weight": 2, "patience": "30s"}, {"label": "ssd"}],
        "slots": 4,
        "resources": {"memory": "8GiB"},
        "affinity": {"key": "${params.a},${params.b}", "patience": "1m"},
        "spread": True,
    }
    assert "No worker has ever had gpu." in result.stdout


def test_fields_not_given_are_not_sent():
    api = FakeApi({"POST /jobs": JOB})
    run(api, "jobs", "create", "train", "--command", "true", "--not-spread")

    assert api.requests[0].body == {"name": "train", "command": "true", "spread": False}


def test_a_worker_offers_its_labels_and_resources():
    flags = {"concurrency": "8", "labels": ("zone=eu",), "resources": ("memory=16GiB", "gpu=2")}
    settings = worker_settings(load(flags, {}).settings)

    assert (settings.concurrency, settings.labels) == (8, {"zone": "eu"})
    assert settings.resources == {"gpu": 2, "memory": 16 << 30}
    with pytest.raises(BadInput, match="memory"):
        worker_settings(load({"resources": ("memory=much",)}, {}).settings)


def test_trigger_warns_about_labels_that_no_worker_ever_had():
    made = {
        "executionId": "0190-2",
        "status": "queued",
        "deduplicated": False,
        "warning": "No worker has ever had gpu.",
    }
    api = FakeApi({"POST /jobs/train/trigger": made, "GET /executions/0190-2": {**made, "hint": None}})

    assert "No worker has ever had gpu." in run(api, "jobs", "trigger", "train").stdout
