"""The data interval of an execution, in its function and in its submissions."""

from datetime import UTC, datetime
from uuid import UUID

from horae.worker.code.context import AttemptFacts, Context

HOUR = 3_600_000_000


class NoPort:
    interrupted = None


def context(**facts) -> Context:
    known = AttemptFacts(
        execution_id=UUID(int=1), job="report", attempt=1, token=1, failures=0, scheduled_at=0, **facts
    )
    return Context(known, NoPort())


def test_a_context_has_its_interval_and_its_upstream_executions():
    ctx = context(interval=(0, HOUR), upstream=(UUID(int=7),))
    assert ctx.interval == (datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 1, tzinfo=UTC))
    assert ctx.upstream == (UUID(int=7),)
    assert (context().interval, context().upstream) == (None, ())


def test_submissions_inherit_the_interval():
    (submission,) = context(interval=(0, HOUR))._submissions("load", [{}], {}).submissions
    assert submission.interval == (0, HOUR)
    (submission,) = context()._submissions("load", [{}], {}).submissions
    assert submission.interval is None
