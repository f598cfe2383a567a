"""Durations of executions, as a worker remembers them."""

from uuid import UUID

import pytest

from horae.worker import pace
from horae.worker.pace import DurationEstimates


def test_durations_of_a_limited_number_of_jobs_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "MOST_JOBS", 2)
    known, (a, b, c) = DurationEstimates(), [UUID(int=n) for n in range(3)]
    known.note(a, 1, 1.0)
    known.note_running(b, 1.0)
    known.note(c, 1, 1.0)

    assert [known.expected(job) for job in (a, b, c)] == [None, 1.0, 1.0]
