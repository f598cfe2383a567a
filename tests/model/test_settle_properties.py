"""Settlement of reported and lost items: each has exactly one destination, and the right budget is charged."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from horae.model.definitions.retry import LOST, RetryPolicy
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE
from horae.model.executions.settle import FailurePolicy, Settler, encode_timings, timing_of
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT, Failure, Outcome
from horae.model.fleet.suspects import Loss
from tests.model.making import JOBS, NOW, PARCELS, cuts, items, running

ONCE_MORE = FailurePolicy(retry=RetryPolicy(retries=3), delivery=AT_LEAST_ONCE)
NO_MORE = FailurePolicy(retry=RetryPolicy(), delivery=AT_LEAST_ONCE)
AT_MOST = FailurePolicy(retry=RetryPolicy(retries=3), delivery=AT_MOST_ONCE)
KINDS = ("success", "failed", "cancelled", "released", "suspended", "lost")
FAILED = Failure(type="ValueError", message="no")


def settler(seed=0):
    return Settler("worker-1", NOW, Random(seed))


def outcome(slice, kind, **more):
    return Outcome(parcel=slice.parcel, lo=slice.lo, hi=slice.hi, attempt=slice.attempt, outcome=kind, **more)


def settle(by, slice, kind, rules):
    """Settle a whole slice like a report, or a loss."""
    match kind:
        case "success":
            by.succeed(slice, slice.lo, slice.hi, outcome(slice, kind))
        case "failed":
            by.fail(slice, slice.lo, slice.hi, outcome(slice, kind, error=FAILED), rules)
        case "cancelled":
            by.cancel(slice, slice.lo, slice.hi, outcome(slice, kind))
        case "released":
            by.release(slice, slice.lo, slice.hi, outcome(slice, kind))
        case "suspended":
            by.suspend(slice, slice.lo, slice.hi, outcome(slice, kind, wake_at=NOW + 5))
        case "lost":
            by.lose(slice, rules.delivery, Loss())


def settled(fates):
    """Return every item with its shelf."""
    return [
        (item, shelf)
        for shelf, slices in (
            ("history", [f.slice for f in fates.finished]),
            ("waiting", fates.waiting),
            ("queued", fates.queued),
        )
        for slice in slices
        for item in items(slice)
    ]


@st.composite
def reports(draw):
    return [
        (
            running(
                parcel, lo, hi, attempt=draw(st.integers(1, 9)), failures=draw(st.integers(0, 5)),
                losses=draw(st.integers(0, LOST)),
            ),
            draw(st.sampled_from(KINDS)),
        )
        for parcel in PARCELS
        for lo, hi in draw(cuts())
    ]  # fmt: skip


@given(reports(), st.sampled_from([ONCE_MORE, NO_MORE, AT_MOST]))
def test_each_reported_item_has_exactly_one_destination(reported, rules):
    by = settler()
    for slice, kind in reported:
        settle(by, slice, kind, rules)

    fates = settled(by.fates)
    assert len(fates) == len(dict(fates))
    assert set(dict(fates)) == {item for slice, _ in reported for item in items(slice)}


@given(reports(), st.sampled_from([ONCE_MORE, NO_MORE, AT_MOST]))
def test_attempts_never_go_back_and_budgets_only_grow_for_what_they_count(reported, rules):
    by = settler()
    for slice, kind in reported:
        settle(by, slice, kind, rules)

    before = {item: (slice, kind) for slice, kind in reported for item in items(slice)}
    for after in [*(f.slice for f in by.fates.finished), *by.fates.waiting, *by.fates.queued]:
        for item in items(after):
            slice, kind = before[item]
            assert after.attempt == slice.attempt
            assert after.failures == slice.failures + (kind == "failed")
            assert after.losses == slice.losses + (kind == "lost")
            assert (after.job, after.queue, after.namespace) == (slice.job, slice.queue, slice.namespace)


@given(reports())
def test_an_unsuccessful_try_is_recorded_once_per_item_and_nothing_else_is(reported):
    by = settler()
    for slice, kind in reported:
        settle(by, slice, kind, ONCE_MORE)

    tried = [(t.parcel, item, t.attempt) for t in by.fates.attempts for item in range(t.lo, t.hi)]
    unsuccessful = ("failed", "cancelled", "lost")
    assert len(tried) == len(set(tried))
    assert sorted(tried) == sorted(
        (*item, slice.attempt) for slice, kind in reported if kind in unsuccessful for item in items(slice)
    )


def test_retries_of_neighbours_share_one_jittered_time():
    by = settler()
    for lo in range(0, 8, 2):
        by.fail(running(lo=lo, hi=lo + 2), lo, lo + 2, outcome(running(lo=lo, hi=lo + 2), "failed"), ONCE_MORE)

    assert len({w.wake_at for w in by.fates.waiting}) == 1
    assert {w.reason for w in by.fates.waiting} == {"retry"}


def test_retries_of_other_jobs_policies_and_counts_have_times_of_their_own():
    minute = FailurePolicy(retry=RetryPolicy(retries=3, delay=60_000_000, jitter=0), delivery=AT_LEAST_ONCE)
    second = FailurePolicy(retry=RetryPolicy(retries=3, jitter=0), delivery=AT_LEAST_ONCE)
    by = settler()
    for lo, rules, more in (
        (0, second, {}),
        (1, minute, {}),
        (2, second, {"failures": 2}),
        (3, second, {"job": JOBS[1]}),
    ):
        slice = running(lo=lo, hi=lo + 1, **more)
        by.fail(slice, lo, lo + 1, outcome(slice, "failed"), rules)

    assert [w.wake_at - NOW for w in by.fates.waiting] == [1_000_000, 60_000_000, 4_000_000, 1_000_000]


def test_retry_after_is_not_shared_with_neighbours():
    by = settler()
    slice = running(lo=0, hi=1)
    by.fail(slice, 0, 1, outcome(slice, "failed", error=Failure(type="Retry", retry_after=600_000_000)), ONCE_MORE)
    by.fail(running(lo=1, hi=2), 1, 2, outcome(running(lo=1, hi=2), "failed"), ONCE_MORE)

    wished, usual = by.fates.waiting
    assert wished.wake_at == NOW + 600_000_000
    assert usual.wake_at != wished.wake_at


@given(st.integers(0, 6), st.integers(0, 6))
def test_failures_are_counted_against_retries(failures, retries):
    by = settler()
    slice = running(failures=failures)
    rules = FailurePolicy(retry=RetryPolicy(retries=retries), delivery=AT_LEAST_ONCE)
    by.fail(slice, 0, 1, outcome(slice, "failed", error=FAILED), rules)

    if failures < retries:
        assert [(w.failures, w.losses, w.attempt) for w in by.fates.waiting] == [(failures + 1, 0, 1)]
        assert by.fates.finished == []
    else:
        assert [(f.state, f.reason, f.slice.failures) for f in by.fates.finished] == [
            ("failed", "retries", failures + 1)
        ]


@given(st.integers(0, 9))
def test_losses_are_counted_against_the_poison_bound_alone(failures):
    slice, fates = running(lo=0, hi=4, failures=failures), None
    for loss in range(1, LOST + 2):
        by = settler()
        by.lose(slice, AT_LEAST_ONCE, Loss())
        fates = by.fates
        if loss < LOST + 1:
            (back,) = fates.queued
            assert (back.losses, back.failures, back.rank, back.lane) == (loss, failures, 7, 1)
            slice = running(lo=0, hi=4, failures=failures, losses=loss, alone=loss)

    assert fates.queued == []
    assert [(f.state, f.reason, f.error.type) for f in fates.finished] == [("failed", "poison", "WorkerLost")]


@pytest.mark.parametrize("kind", ["failed", "lost"])
def test_an_at_most_once_execution_is_never_retried(kind):
    by = settler()
    settle(by, running(lo=0, hi=3), kind, AT_MOST)

    assert (by.fates.waiting, by.fates.queued) == ([], [])
    assert [(f.state, f.reason) for f in by.fates.finished] == [("failed", "delivery")]


def test_released_items_return_to_their_place_without_a_charge():
    by = settler()
    slice = running(lo=2, hi=5, attempt=4, failures=1, losses=2)
    by.release(slice, 2, 5, outcome(slice, "released"))

    (back,) = by.fates.queued
    assert (back.attempt, back.failures, back.losses) == (4, 1, 2)
    assert (back.lane, back.rank, back.queued_at) == (slice.lane, slice.rank, slice.queued_at)
    assert by.fates.attempts == []


SIZES = st.sampled_from([0, 3, MAX_INLINE_RESULT - 1, MAX_INLINE_RESULT, MAX_INLINE_RESULT + 1, MAX_RESULT])


@given(st.lists(SIZES, min_size=1, max_size=5), st.integers(0, 3))
def test_results_are_stored_by_size(sizes, lo):
    """Small results are stored inline, large ones as blobs; each item keeps its own."""
    hi = lo + len(sizes)
    slice = running(lo=lo, hi=hi)
    results = [b"null" if size == 0 else b'"' + bytes([97 + i]) * (size - 2) + b'"' for i, size in enumerate(sizes)]
    by = settler()
    by.succeed(slice, lo, hi, outcome(slice, "success", results=[Raw(r) for r in results]))

    blobs = {item: content for _, item, content in by.fates.blobs}
    kept = {}
    for f in by.fates.finished:
        inline = f.results.part(0, len(f.results)) if f.results else [b"null"] * (f.slice.hi - f.slice.lo)
        for item, result in zip(range(f.slice.lo, f.slice.hi), inline, strict=True):
            kept[item] = blobs[item] if result == b"" else result
    assert kept == dict(zip(range(lo, hi), results, strict=True))
    assert all(len(blob) > MAX_INLINE_RESULT for blob in blobs.values())
    assert {f.state for f in by.fates.finished} == {"success"}


def test_a_result_over_its_limit_fails_its_item_alone():
    slice = running(lo=0, hi=3)
    large = Raw(b'"' + b"x" * MAX_RESULT + b'"')
    by = settler()
    by.succeed(slice, 0, 3, outcome(slice, "success", results=[Raw(b"1"), large, Raw(b"3")]))

    assert [(f.slice.lo, f.state, f.reason) for f in by.fates.finished] == [
        (0, "success", ""), (1, "failed", "permanent"), (2, "success", ""),
    ]  # fmt: skip
    assert by.fates.finished[1].error.type == "ResultTooLarge"
    assert by.fates.blobs == []


def test_null_results_are_not_stored():
    slice = running(lo=0, hi=3)
    for results in ([], [Raw(b"null")] * 3):
        by = settler()
        by.succeed(slice, 0, 3, outcome(slice, "success", results=results))
        assert by.fates.finished[0].results is None


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**31)), min_size=1, max_size=9), st.data())
def test_encoded_timings_read_back(spans, data):
    first = NOW
    starts = [first + offset for offset, _ in spans]
    ends = [start + length for start, (_, length) in zip(starts, spans, strict=True)]
    encoded = encode_timings(first, starts, ends)

    index = data.draw(st.integers(0, len(spans) - 1))
    assert timing_of(encoded, index, first, max(ends)) == (starts[index], ends[index])
    assert len(encoded) == 8 * len(spans)


@given(st.integers(), st.integers())
def test_timings_out_of_range_are_bounded(start, end):
    begun, ended = timing_of(encode_timings(NOW, [start], [end]), 0, NOW, NOW)

    assert NOW <= begun <= ended <= NOW + 2 * 2**32


def test_items_without_timings_have_the_times_of_the_slice():
    assert timing_of(None, 3, NOW, NOW + 5) == (NOW, NOW + 5)
    assert timing_of(b"", 0, None, NOW + 5) == (None, NOW + 5)


@given(st.lists(st.integers(NOW - 100, NOW + 100), max_size=3), st.lists(st.integers(NOW - 100, NOW + 100), max_size=3))
def test_a_workers_clock_is_bounded_by_the_attempt(starts, ends):
    """The attempt starts after its grant and ends before now, whatever times a worker reports."""
    slice = running(lo=0, hi=3)
    by = settler()
    by.succeed(slice, 0, 3, outcome(slice, "success", started_at=starts, ended_at=ends))

    (done,) = by.fates.finished
    assert slice.granted_at <= done.started_at <= done.completed_at <= NOW


def test_a_part_of_a_report_has_its_own_results_and_times():
    slice = running(lo=2, hi=4)
    said = Outcome(
        parcel=slice.parcel, lo=0, hi=6, attempt=1, outcome="success", results=[Raw(str(n).encode()) for n in range(6)],
        started_at=[NOW - 20 + n for n in range(6)], ended_at=[NOW - 10 + n for n in range(6)],
    )  # fmt: skip
    by = settler()
    by.succeed(slice, 2, 4, said)

    (done,) = by.fates.finished
    assert done.results.part(0, 2) == [b"2", b"3"]
    assert (done.started_at, done.completed_at) == (NOW - 18, NOW - 7)
    assert timing_of(done.timings, 1, done.started_at, done.completed_at) == (NOW - 17, NOW - 7)


def test_a_suspended_item_wakes_at_once_when_its_signal_has_arrived():
    slice = running(lo=0, hi=3)
    by = Settler("worker-1", NOW, Random(0), awaited={(slice.parcel, 0, "a"), (slice.parcel, 1, "a")})
    by.suspend(slice, 0, 3, outcome(slice, "suspended", wake_at=NOW + 5, waits=["a"]))

    assert [(w.lo, w.hi, w.wake_at, w.reason, w.gate) for w in by.fates.waiting] == [
        (0, 1, NOW + 5, "signal", "signal"), (1, 2, NOW + 5, "signal", "signal"), (2, 3, NOW, "signal", "signal"),
    ]  # fmt: skip
