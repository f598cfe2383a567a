"""The deadline of a submission: its own, or its job's."""

import pytest

from horae.client.workflows.job_options import SPELLED
from horae.engine.executions.resolver import deadline_of
from horae.env import SECOND
from horae.model.fleet.submit import Submit

NOW, MINUTE, HOUR = 1_000 * SECOND, 60 * SECOND, 3600 * SECOND


@pytest.mark.parametrize(
    ("said", "usual", "due_at", "wanted"),
    [
        ({}, None, 0, None),
        ({}, HOUR, 0, NOW + HOUR),
        ({}, HOUR, NOW + MINUTE, NOW + MINUTE + HOUR),
        ({"within": MINUTE}, HOUR, 0, NOW + MINUTE),
        ({"deadline": NOW + SECOND}, HOUR, 0, NOW + SECOND),
    ],
)
def test_a_submission_has_its_own_deadline_or_its_jobs(said, usual, due_at, wanted):
    assert deadline_of(Submit(job="job", **said), usual, due_at, NOW) == wanted


def test_the_sdk_encodes_a_duration():
    assert SPELLED["within"]("2h") == "2h"
