"""`Retry-After` of failed requests."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from horae.env import SECOND
from horae.worker.code.failure import LONGEST, retry_after, status_and_delay

DATE = "Sun, 15 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "120"}, 120 * SECOND),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "99999999999"}, LONGEST),
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT", "date": DATE}, 30 * SECOND),
        ({"retry-after": "Sun, 15 Nov 2026 11:00:00 GMT", "date": DATE}, 0),
        ({"retry-after": "Sun, 15 Nov 2027 11:00:00 GMT", "date": DATE}, LONGEST),
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "soon", "date": DATE}, None),
        ({"retry-after": "-5"}, None),
        ({}, None),
    ],
)
def test_seconds_or_a_date_relative_to_the_answers_own(headers, wait):
    assert retry_after(headers) == wait


class Refused(Exception):
    def __init__(self, **more):
        self.__dict__ |= more


def answer(status, **headers):
    return SimpleNamespace(status_code=status, headers={name.replace("_", "-"): text for name, text in headers.items()})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Refused(), (None, None)),
        (Refused(retry_after=5), (None, 5 * SECOND)),
        (Refused(retry_after=timedelta(minutes=1)), (None, 60 * SECOND)),
        (Refused(retry_after="1m"), (None, 60 * SECOND)),
        (Refused(retry_after="whenever"), (None, None)),
        (Refused(retry_after=True), (None, None)),
        (Refused(response=answer(429, retry_after="7")), (429, 7 * SECOND)),
        (Refused(response=answer(500)), (500, None)),
        (Refused(response=answer(503, retry_after="7"), retry_after=1), (503, SECOND)),
        (Refused(response="no"), (None, None)),
        (Refused(response=SimpleNamespace(status_code=503, headers=None)), (None, None)),
    ],
)
def test_an_exception_may_carry_a_wait_and_an_answer(error, told):
    assert status_and_delay(error) == told
