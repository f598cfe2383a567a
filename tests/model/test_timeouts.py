"""Timeouts: which one has passed, and when to check again: never too early, never forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.definitions.reading.patch import merge_definition
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition
from horae.model.definitions.timeouts import (
    RECHECK_INTERVAL,
    AttemptTimeouts,
    AttemptTimes,
    ParcelTimeouts,
    Timeouts,
    overdue,
)
from tests.model.making import NOW, queued, waiting

spans = st.none() | st.integers(1, 1000)
allowances = st.builds(AttemptTimeouts, start=spans, run=spans, heartbeat=spans, total=spans)


@given(allowances, *(st.integers(0, 1000) for _ in range(4)), st.booleans())
def test_an_overdue_item_has_exceeded_its_timeout(allowed, granted, began, heard, age, started):
    held = AttemptTimes(
        due_at=NOW, granted_at=NOW + granted, started_at=NOW + granted + began if started else None,
        heard_at=NOW + granted + began + heard if started and heard else None,
    )  # fmt: skip
    now = NOW + granted + began + heard + age
    since = held.started_at or held.granted_at
    taken = {
        "total": now - NOW,
        "start": None if started else now - held.granted_at,
        "run": now - since,
        "heartbeat": now - (held.heard_at or since) if started else None,
    }
    over = {name for name, span in taken.items() if span is not None and getattr(allowed, name) is not None
            and span > getattr(allowed, name)}  # fmt: skip

    found = overdue(held, allowed, now)
    assert found in over if over else found is None


bounds = st.builds(
    ParcelTimeouts,
    queue=st.integers(1, 60 * SECOND),
    total=st.none() | st.integers(1, 600 * SECOND),
    due_at=st.just(NOW),
)


@given(bounds, st.integers(0, 700 * SECOND), st.booleans())
def test_the_next_check_is_before_or_soon_after_a_timeout(patience, age, runs):
    now = NOW + age
    left = [
        slice for slice in (queued(queued_at=now - 5), waiting(wake_at=now + 7)) if not patience.is_over(slice, now)
    ]
    again = patience.next_check(left, runs, now)

    if not left and not runs:
        assert again is None
        return
    assert again > now
    for slice in left:
        entry = slice.queued_at if hasattr(slice, "queued_at") else slice.wake_at
        assert again <= max(entry + patience.queue, now + SECOND)
    if patience.total is not None:
        assert again <= max(NOW + patience.total, now + RECHECK_INTERVAL)


def test_the_total_timeout_is_checked_before_the_queue_timeout():
    both = ParcelTimeouts(queue=10, total=20, due_at=NOW)
    stands = queued(queued_at=NOW)

    assert not both.is_over(stands, NOW + 9)
    assert (both.is_over(stands, NOW + 10), both.failure(NOW + 10).type) == (True, "QueueTimeout")
    assert not both.is_over(waiting(), NOW + 10)
    assert (both.is_over(waiting(), NOW + 20), both.failure(NOW + 20).type) == (True, "TotalTimeout")
    assert (both.first_check, ParcelTimeouts(total=20, due_at=NOW).first_check) == (NOW + 10, NOW + 20)


def test_a_parcel_without_timeouts_is_never_overdue():
    assert spec().parcel_timeouts is None
    assert spec(timeout="5s").parcel_timeouts is None
    assert spec(timeouts={"queue": "5s"}).parcel_timeouts == ParcelTimeouts(queue=5 * SECOND)


def spec(**fields):
    return parse_definition({"name": "a", "command": "true", **fields}, namespace_name="n", created_at=0).spec


def test_timeouts_are_read_and_written():
    said = {"queue": "10m", "start": "30s", "heartbeat": "1m", "total": "1h"}
    made = spec(timeouts={**said, "run": "5m"})

    assert made.timeouts == Timeouts(queue=600 * SECOND, start=30 * SECOND, heartbeat=60 * SECOND)
    assert (made.timeout, made.retry.within) == (300 * SECOND, 3600 * SECOND)
    assert made == spec(timeout="5m", timeouts=said)
    assert spec(timeout="5m", timeouts={"run": "5m"}) == spec(timeout="5m")
    shown = render_definition(made)
    assert (shown["timeout"], shown["timeouts"]) == ("5m", said)
    assert made.attempt_timeouts == AttemptTimeouts(
        start=30 * SECOND, run=310 * SECOND, heartbeat=60 * SECOND, total=3600 * SECOND
    )
    assert structs.replace(made, timeouts=Timeouts()).parcel_timeouts == ParcelTimeouts(total=3600 * SECOND)


def test_a_patch_changes_a_single_timeout():
    current = render_definition(spec(timeout="5m", timeouts={"queue": "10m", "total": "1h"}))
    after = merge_definition(current, {"timeouts": {"run": "6m", "queue": None}})

    assert (after["timeout"], after["timeouts"]) == ("6m", {"total": "1h"})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"timeouts": {"quue": "1s"}}, "timeouts.quue"),
        ({"timeouts": {"queue": 0}}, "timeouts.queue"),
        ({"timeouts": {"start": "soon"}}, "timeouts.start"),
        ({"timeouts": ["1s"]}, "timeouts"),
        ({"timeout": "1m", "timeouts": {"run": "2m"}}, "timeouts.run"),
        ({"timeout": "1m", "timeouts": {"total": "30s"}}, "timeouts.total"),
        ({"command": None, "http": "https://x", "timeouts": {"heartbeat": "1m"}}, "timeouts.heartbeat"),
    ],
)
def test_invalid_timeouts_are_refused(fields, field):
    with pytest.raises(BadInput) as refused:
        spec(**fields)
    assert refused.value.fields["field"] == field
