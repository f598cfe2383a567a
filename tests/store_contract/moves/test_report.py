"""Reports are matched by overlap with the slices that the session holds at that attempt; each item is settled once."""

import asyncio

import msgspec
import pytest

from horae.model.definitions.retry import Budgets, RetryPolicy
from horae.model.executions.output.log_chunk import unpack_lines
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT, Exchange, Failure
from tests.store_contract.world import (
    World,
    began,
    cancelled,
    failed,
    lines,
    progress,
    rank,
    released,
    spans,
    success,
    suspended,
)

SECOND = 1_000_000


def ranges(ignored):
    return [(r.lo, r.hi, r.attempt) for r in ignored]


async def held(world: World, n: int = 10, **spec):
    """Create a worker that holds one slice of n items."""
    job = await world.job(**spec)
    parcel = await world.parcel(job, n)
    w = await world.worker()
    (slice,) = await w.claim(n)
    return job, parcel, w, slice


# The items that a report moves


async def test_a_whole_slice_succeeds(world: World):
    _, parcel, w, slice = await held(world)
    reply = await w.report(success(slice))

    assert reply.ignored == []
    assert await world.history(parcel) == [(0, 10, "success", "")]
    assert await w.holds() == []


async def test_a_partial_report_leaves_the_rest_running(world: World):
    _, parcel, w, slice = await held(world)
    await w.report(success(slice, 3, 5))

    assert spans(await w.holds()) == [(0, 3), (5, 10)]
    assert await world.history(parcel) == [(3, 5, "success", "")]
    left = await w.holds()
    assert all(msgspec.structs.replace(s, lo=0, hi=10) == slice for s in left)


async def test_reports_written_against_the_same_bounds_are_both_accepted(world: World):
    _, parcel, w, slice = await held(world)
    one = await w.report(success(slice, 0, 5), channel=0)
    two = await w.report(success(slice, 5, 10), channel=1)

    assert (one.ignored, two.ignored) == ([], [])
    assert await world.states(parcel) == ["success"] * 10


async def test_overlapping_reports_settle_each_item_once(world: World):
    _, parcel, w, slice = await held(world)
    await w.report(success(slice, 0, 6))
    reply = await w.report(success(slice, 4, 10))

    assert ranges(reply.ignored) == [(4, 6, 1)]
    assert await world.history(parcel) == [(0, 6, "success", ""), (6, 10, "success", "")]


async def test_a_duplicate_report_is_ignored(world: World):
    _, parcel, w, slice = await held(world)
    await w.report(success(slice, 2, 4))
    again = await w.exchange(n=2, outcomes=[success(slice, 2, 4)])

    assert ranges(again.ignored) == [(2, 4, 1)]
    assert len(await world.history(parcel)) == 1


async def test_one_report_may_name_an_item_twice(world: World):
    _, parcel, w, slice = await held(world)
    reply = await w.report(failed(slice, 0, 4), success(slice, 2, 10))

    assert ranges(reply.ignored) == [(2, 4, 1)]
    assert await world.states(parcel) == ["failed"] * 4 + ["success"] * 6


async def test_reports_in_any_order_settle_everything(world: World):
    _, parcel, w, slice = await held(world)
    for item in (7, 0, 9, 3, 4, 1, 8, 2, 6, 5):
        await w.report(success(slice, item, item + 1))

    assert await world.states(parcel) == ["success"] * 10


async def test_one_report_spans_several_slices(world: World):
    _, parcel, w, slice = await held(world)
    await w.exchange(started=[began(slice, world.now(), 2, 3), began(slice, world.now(), 6, 8)])
    assert spans(await w.holds()) == [(0, 2), (2, 3), (3, 6), (6, 8), (8, 10)]
    await w.report(success(slice, 1, 9))

    assert spans(await w.holds()) == [(0, 1), (9, 10)]
    assert await world.states(parcel) == ["running"] + ["success"] * 8 + ["running"]


async def test_reports_on_two_channels_at_once_are_both_accepted(world: World):
    _, parcel, w, slice = await held(world)
    await asyncio.gather(*(w.report(*(success(slice, i, i + 1) for i in range(c, 10, 4)), channel=c) for c in range(4)))

    assert await world.states(parcel) == ["success"] * 10


async def test_exchanges_of_one_session_in_one_batch_are_all_settled(world: World):
    _, parcel, w, slice = await held(world)
    heads = [
        w.head(Exchange(channel=c, n=w.numbers[c] + 1, outcomes=[success(slice, 2 * c, 2 * c + 3)]), frozenset())
        for c in range(3)
    ]
    done = await world.store.exchange(heads, [], frozenset(), {})

    assert await world.history(parcel) == [(0, 3, "success", ""), (3, 5, "success", ""), (5, 7, "success", "")]
    assert [ranges(reply.ignored) for reply in done.replies] == [[], [(2, 3, 1)], [(4, 5, 1)]]


async def test_reports_of_items_that_were_never_granted_are_ignored(world: World):
    _, parcel, w, slice = await held(world, 3)
    other = world.env.new_id()
    reply = await w.report(
        success(slice, 2, 9), success(msgspec.structs.replace(slice, parcel=other)), success(slice, 0, 1, attempt=2)
    )

    assert [(r.parcel, r.lo, r.hi, r.attempt) for r in reply.ignored] == [
        (parcel, 3, 9, 1), (other, 0, 3, 1), (parcel, 0, 1, 2),
    ]  # fmt: skip
    assert await world.states(parcel) == ["running", "running", "success"]


async def test_another_sessions_items_are_not_touched(world: World):
    _, _, w, slice = await held(world, 3)
    thief = await world.worker("thief")
    reply = await thief.exchange(
        outcomes=[success(slice)], started=[began(slice, world.now())], progress=[progress(slice, 0, 50)],
        logs=[lines(slice, 0, 0, "no")],
    )  # fmt: skip

    assert ranges(reply.ignored) == [(0, 3, 1)]
    assert await w.holds() == [slice]
    assert await world.rows("SELECT item FROM progress") == []
    assert await world.rows("SELECT item FROM logs") == []


async def test_a_late_report_of_a_lost_session_changes_nothing(world: World):
    _, parcel, w, slice = await held(world, 3)
    await w.lose()
    await world.store.rescue(w.session, 100)
    fresh = await world.worker("fresh")
    granted = await fresh.claim(9)
    reply = await w.exchange(outcomes=[success(slice)])

    assert reply.decision == "ended"
    assert await fresh.holds() == granted
    assert await world.states(parcel) == ["running"] * 3


async def test_a_late_report_of_an_older_attempt_changes_nothing(world: World):
    """The same session got the item again: the attempt number distinguishes the two."""
    _, _, w, slice = await held(world, 3)
    await w.report(released(slice))
    (again,) = await w.claim(3)
    reply = await w.report(success(slice))

    assert again.attempt == 2
    assert ranges(reply.ignored) == [(0, 3, 1)]
    assert await w.holds() == [again]


async def test_a_report_in_an_old_exchange_is_still_settled(world: World):
    """The number of an exchange does not matter for its outcomes: a repeat brings them if the first copy was lost."""
    _, parcel, w, slice = await held(world, 3)
    reply = await w.exchange(n=1, outcomes=[success(slice)])

    assert (reply.known, reply.ignored) == (True, [])
    assert await world.states(parcel) == ["success"] * 3


# The results of reports


async def test_results_come_back_as_they_were_sent(world: World):
    _, _, w, slice = await held(world, 3)
    await w.report(success(slice, results=[b'{"a": 1}', b"null", b'"x"']))

    ((ends, results),) = await world.rows("SELECT ends, results FROM history")
    assert bytes(results) == b'{"a": 1}null"x"'
    assert len(ends) == 12


async def test_null_results_take_no_space(world: World):
    _, _, w, slice = await held(world, 3)
    await w.report(success(slice, 0, 2, results=[b"null", b"null"]), success(slice, 2, 3))

    assert await world.rows("SELECT ends, results FROM history") == [(None, None), (None, None)]


async def test_large_results_are_stored_by_reference_and_too_large_ones_fail_their_item(world: World):
    _, parcel, w, slice = await held(world, 4)
    sizes = [8, MAX_INLINE_RESULT + 1, MAX_RESULT + 1, MAX_INLINE_RESULT]
    results = [b'"' + b"x" * (size - 2) + b'"' for size in sizes]
    await w.report(success(slice, results=results))

    assert await world.states(parcel) == ["success", "success", "failed", "success"]
    assert [(row[0], len(row[1])) for row in await world.rows("SELECT item, content FROM blobs")] == [(1, sizes[1])]
    assert [len(bytes(row[0] or b"")) for row in await world.rows("SELECT results FROM history ORDER BY lo")] == [
        8, 0, 0, MAX_INLINE_RESULT,
    ]  # fmt: skip
    ((error,),) = await world.rows("SELECT error FROM history WHERE state = 'failed'")
    assert msgspec.json.decode(error, type=Failure).type == "ResultTooLarge"


async def test_a_failure_without_retries_ends_among_the_dead_letters(world: World):
    job, parcel, w, slice = await held(world, 2)
    await w.report(failed(slice), policies=job.policy)

    assert await world.history(parcel) == [(0, 2, "failed", "retries")]
    ((outcome, error, attempt),) = await world.rows("SELECT outcome, error, attempt FROM attempts")
    assert (outcome, attempt, msgspec.json.decode(error, type=Failure).type) == ("failed", 1, "ValueError")


@pytest.mark.parametrize("known", [True, False])
async def test_retries_wait_and_are_counted(world: World, known):
    """The policy is taken from the server's memory, or from the parcel's own job version."""
    policy = RetryPolicy(retries=2, delay=10 * SECOND, factor=1.0, jitter=0)
    job, parcel, w, slice = await held(world, 2, retry=policy)
    policies = job.policy if known else {}
    for failures in (1, 2):
        await w.report(failed(slice), policies=policies)
        (waits,) = await world.on("waiting")
        assert (waits.wake_at, waits.reason, waits.failures, waits.losses) == (
            world.now() + 10 * SECOND, "retry", failures, 0,
        )  # fmt: skip
        world.clock.advance(10 * SECOND)
        await world.store.promote_due(0, 10, rank)
        (slice,) = await w.claim(2)
    await w.report(failed(slice), policies=policies)

    assert await world.history(parcel) == [(0, 2, "failed", "retries")]
    assert [row[0] for row in await world.rows("SELECT attempt FROM attempts ORDER BY attempt")] == [1, 2, 3]


async def test_neighbours_that_fail_together_wake_together(world: World):
    job, _, w, slice = await held(world, 4, retry=RetryPolicy(retries=1, jitter=0.5))
    await w.report(*(failed(slice, i, i + 1) for i in range(4)), policies=job.policy)

    waits = await world.on("waiting")
    assert spans(waits) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert len({s.wake_at for s in waits}) == 1
    assert w.effects.wakes == [waits[0].wake_at] * 4


async def test_each_class_of_failure_has_a_separate_retry_budget(world: World):
    budgets = Budgets(timeout=1, platform=0)
    job, parcel, w, slice = await held(world, 3, retry=RetryPolicy(retries=1, delay=0, jitter=0, budgets=budgets))
    late, error = Failure(type="RunTimeout", kind="timeout"), Failure(type="ValueError")

    await w.report(failed(slice, 0, 2, error=late), failed(slice, 2, 3, error=error), policies=job.policy)
    await world.store.promote_due(-1, 10, rank)
    (slice,) = await w.claim(3)
    assert (slice.lo, slice.hi, slice.failures) == (0, 3, 1), (
        "items that failed in other ways are joined into one slice"
    )
    await w.report(failed(slice, 0, 1, error=late), failed(slice, 1, 3, error=error), policies=job.policy)

    assert await world.history(parcel) == [(0, 1, "failed", "runTimeout"), (2, 3, "failed", "retries")]
    await world.store.promote_due(-1, 10, rank)
    (slice,) = await w.claim(3)
    await w.report(failed(slice, error=Failure(type="CannotStart", kind="platform")), policies=job.policy)
    assert await world.history(parcel) == [
        (0, 1, "failed", "runTimeout"), (1, 2, "failed", "platform"), (2, 3, "failed", "retries"),
    ]  # fmt: skip


async def test_a_retry_after_the_deadline_ends_the_execution(world: World):
    policy = RetryPolicy(retries=9, delay=SECOND, jitter=0, within=3 * SECOND)
    job, parcel, w, slice = await held(world, 1, retry=policy)
    await w.report(failed(slice), policies=job.policy)
    world.clock.advance(SECOND)
    await world.store.promote_due(-1, 10, rank)
    (slice,) = await w.claim(1)
    await w.report(failed(slice), policies=job.policy)

    assert await world.history(parcel) == [(0, 1, "failed", "totalTimeout")]


async def test_permanent_failures_are_not_retried(world: World):
    job, parcel, w, slice = await held(world, 2, retry=RetryPolicy(retries=9))
    await w.report(failed(slice, error=Failure(type="GiveUp", permanent=True)), policies=job.policy)

    assert await world.history(parcel) == [(0, 2, "failed", "permanent")]


async def test_a_failed_attempt_at_most_once_is_final(world: World):
    job, parcel, w, slice = await held(world, 2, delivery="at-most-once")
    await w.report(failed(slice), policies=job.policy)

    assert await world.history(parcel) == [(0, 2, "failed", "delivery")]


async def test_handed_back_items_keep_their_place_and_are_not_charged(world: World):
    _, parcel, w, slice = await held(world, 4)
    await w.report(released(slice, 1, 3))

    (queued,) = await world.on("queued", parcel)
    assert (queued.lo, queued.hi, queued.rank, queued.lane) == (1, 3, slice.rank, slice.lane)
    assert (queued.attempt, queued.failures, queued.losses) == (1, 0, 0)
    assert w.effects.requeued == {slice.lane: slice.rank}
    assert await world.rows("SELECT attempt FROM attempts") == []


async def test_a_handed_back_attempt_that_had_begun_is_recorded_and_not_charged(world: World):
    _, parcel, w, slice = await held(world, 3)
    world.clock.advance(100)
    at = world.now()
    await w.exchange(started=[began(slice, at - 50, 0, 1)])
    await w.report(
        released(slice, 0, 1), released(slice, 1, 2, started_at=[at - 7], ended_at=[at]), released(slice, 2, 3)
    )

    tried = await world.rows("SELECT lo, attempt, outcome, worker, started_at FROM attempts ORDER BY lo")
    assert tried == [(0, 1, "released", "w", at - 50), (1, 1, "released", "w", at - 7)]
    assert {(s.failures, s.losses) for s in await world.on("queued", parcel)} == {(0, 0)}


async def test_a_reported_start_time_is_not_changed_by_the_outcome(world: World):
    """A worker's estimate of its clock offset improves with time."""
    _, _, w, slice = await held(world, 1)
    world.clock.advance(100)
    await w.exchange(started=[began(slice, world.now() - 50)])
    await w.report(success(slice, started_at=[world.now() - 45], ended_at=[world.now() - 1]))

    assert await world.rows("SELECT started_at, completed_at FROM history") == [(world.now() - 50, world.now() - 1)]


async def test_a_started_at_most_once_item_cannot_be_handed_back(world: World):
    _, parcel, w, slice = await held(world, 2, delivery="at-most-once")
    await w.exchange(started=[began(slice, world.now(), 0, 1)])
    await w.report(released(slice))

    assert await world.states(parcel) == ["failed", "queued"]
    assert await world.history(parcel) == [(0, 1, "failed", "delivery")]


async def test_an_at_most_once_item_whose_outcome_shows_a_start_cannot_be_handed_back(world: World):
    _, parcel, w, slice = await held(world, 2, delivery="at-most-once")
    now = world.now()
    await w.report(released(slice, 0, 1, started_at=[now], ended_at=[now]), released(slice, 1, 2))

    assert await world.states(parcel) == ["failed", "queued"]
    assert await world.history(parcel) == [(0, 1, "failed", "delivery")]


async def test_an_at_most_once_item_reported_as_begun_cannot_be_handed_back(world: World):
    _, parcel, w, slice = await held(world, 2, delivery="at-most-once")
    await w.report(released(slice, 0, 1, started_at=[world.now()]), released(slice, 1, 2))

    assert await world.states(parcel) == ["failed", "queued"]


async def test_a_sleeping_execution_waits_without_a_worker_and_reads_as_running(world: World):
    _, parcel, w, slice = await held(world, 2)
    await w.report(suspended(slice, world.now() + 60 * SECOND))

    assert await w.holds() == []
    (waits,) = await world.on("waiting")
    assert (waits.reason, waits.wake_at, waits.failures) == ("sleep", world.now() + 60 * SECOND, 0)
    assert await world.states(parcel) == ["running"] * 2


async def test_an_at_most_once_execution_is_not_suspended(world: World):
    """A suspended execution begins again, which is not allowed here."""
    _, parcel, w, slice = await held(world, 1, delivery="at-most-once")
    await w.report(suspended(slice, world.now() + 60 * SECOND))

    assert await world.history(parcel) == [(0, 1, "failed", "delivery")]


async def test_a_cancelled_item_has_stopped(world: World):
    _, parcel, w, slice = await held(world, 3)
    await w.report(cancelled(slice, 1, 2))

    assert await world.states(parcel) == ["running", "cancelled", "running"]


async def test_every_kind_of_outcome_in_one_report(world: World):
    job, parcel, w, slice = await held(world, 6, retry=RetryPolicy(retries=1))
    await w.report(
        success(slice, 0, 1), failed(slice, 1, 2), cancelled(slice, 2, 3), released(slice, 3, 4),
        suspended(slice, world.now() + 1, 4, 5), policies=job.policy,
    )  # fmt: skip

    assert await world.states(parcel) == ["success", "waiting", "cancelled", "queued", "running", "running"]
    assert spans(await w.holds()) == [(5, 6)]


async def test_failures_losses_and_hand_backs_are_counted_separately(world: World):
    """A failure, a loss and a hand-back have separate counters; the attempt number counts all of them."""
    job, parcel, w, slice = await held(world, 1, retry=RetryPolicy(retries=5, delay=1))
    await w.report(released(slice))
    (slice,) = await w.claim()
    await w.report(failed(slice), policies=job.policy)
    world.clock.advance(SECOND)
    await world.store.promote_due(0, 10, rank)
    await w.claim()
    await w.lose()
    await world.store.rescue(w.session, 10)

    (queued,) = await world.on("queued", parcel)
    assert (queued.attempt, queued.failures, queued.losses) == (3, 1, 1)


# Starts, progress and logs


async def test_a_started_item_becomes_a_separate_slice(world: World):
    _, _, w, slice = await held(world)
    world.clock.advance(10)
    reply = await w.exchange(started=[began(slice, world.now() - 3, 4, 6)])

    assert reply.ignored == []
    assert [(s.lo, s.hi, s.started_at) for s in await w.holds()] == [
        (0, 4, None), (4, 6, world.now() - 3), (6, 10, None),
    ]  # fmt: skip
    assert spans(await world.store.stamped_slices(w.session, 0, 1)) == [(0, 4), (4, 6), (6, 10)]


async def test_a_start_reported_twice_changes_nothing(world: World):
    _, _, w, slice = await held(world)
    world.clock.advance(10)
    await w.exchange(started=[began(slice, world.now() - 3, 4, 6)])
    before = await w.holds()
    await w.exchange(started=[began(slice, world.now(), 4, 6)])

    assert await w.holds() == before


async def test_a_start_is_never_before_the_grant(world: World):
    _, _, w, slice = await held(world, 1)
    await w.exchange(started=[began(slice, slice.granted_at - 99)])

    assert (await w.holds())[0].started_at == slice.granted_at


async def test_a_start_and_an_outcome_in_one_exchange(world: World):
    _, parcel, w, slice = await held(world, 4)
    world.clock.advance(100)
    await w.exchange(
        started=[began(slice, world.now() - 50, 1, 3)], outcomes=[success(slice, 0, 2)], logs=[lines(slice, 1, 0, "a")]
    )

    assert await world.states(parcel) == ["success"] * 2 + ["running"] * 2
    assert [(s.lo, s.hi, s.started_at) for s in await w.holds()] == [(2, 3, world.now() - 50), (3, 4, None)]
    assert await world.rows("SELECT item, seq FROM logs") == [(1, 0)]


async def test_progress_is_the_last_report(world: World):
    _, _, w, slice = await held(world, 2)
    await w.exchange(progress=[progress(slice, 0, 10.0), progress(slice, 0, 20.0, message="on")])
    await w.exchange(progress=[progress(slice, 1, 5.0)])

    assert await world.rows("SELECT item, attempt, percent, message FROM progress ORDER BY item") == [
        (0, 1, 20.0, "on"), (1, 1, 5.0, ""),
    ]  # fmt: skip


async def test_progress_and_logs_of_an_older_attempt_are_refused(world: World):
    _, _, w, slice = await held(world, 1)
    await w.report(released(slice))
    (again,) = await w.claim()
    await w.exchange(progress=[progress(again, 0, 90.0)])
    await w.exchange(progress=[progress(slice, 0, 10.0)], logs=[lines(slice, 0, 0, "old")])

    assert await world.rows("SELECT percent FROM progress") == [(90.0,)]
    assert await world.rows("SELECT seq FROM logs") == []


async def test_a_repeated_exchange_doubles_no_log_line(world: World):
    _, _, w, slice = await held(world, 1)
    for n in (2, 2, 3):
        await w.exchange(n=n, logs=[lines(slice, 0, 0, "a", "b"), lines(slice, 0, 2, f"c{n}")])

    rows = await world.rows("SELECT seq, count, lines FROM logs ORDER BY seq")
    told = [text for _, _, blob in rows for text in unpack_lines(bytes(blob)).texts]
    assert [(seq, count) for seq, count, _ in rows] == [(0, 2), (2, 1)]
    assert told == ["a", "b", "c2"]


@pytest.mark.parametrize("together", [True, False])
async def test_repeated_lines_in_other_pieces_keep_their_numbers(world: World, together):
    _, _, w, slice = await held(world, 1)
    told = [(0, "ab"), (1, "bc"), (0, "abcd"), (2, "c"), (4, "ef"), (3, "defg")]
    pieces = [lines(slice, 0, seq, *texts) for seq, texts in told]
    for exchange in [pieces] if together else [[piece] for piece in pieces]:
        await w.exchange(logs=exchange)

    rows = await world.rows("SELECT base + seq, count, lines FROM logs ORDER BY seq")
    assert [(at, count) for at, count, _ in rows] == [(0, 2), (2, 1), (3, 1), (4, 2), (6, 1)]
    assert [text for _, _, blob in rows for text in unpack_lines(bytes(blob)).texts] == list("abcdefg")


async def test_the_last_lines_are_sent_with_the_outcome(world: World):
    _, _, w, slice = await held(world, 1)
    await w.exchange(outcomes=[success(slice)], logs=[lines(slice, 0, 0, "bye")], progress=[progress(slice, 0, 100.0)])
    await w.exchange(logs=[lines(slice, 0, 1, "too late")])

    assert await world.rows("SELECT seq FROM logs") == [(0,)]
    assert await world.rows("SELECT percent FROM progress") == [(100.0,)]


async def test_times_are_stored_per_slice_and_per_item(world: World):
    _, _, w, slice = await held(world, 2)
    world.clock.advance(100)
    at = world.now()
    await w.report(success(slice, started_at=[at - 50, at - 40], ended_at=[at - 30, at - 20]))

    ((started, ended, timings, worker),) = await world.rows(
        "SELECT started_at, completed_at, timings, worker FROM history"
    )
    assert (started, ended, worker) == (at - 50, at - 20, "w")
    assert len(timings) == 16


async def test_effects_list_the_ended_slices(world: World):
    job, parcel, w, slice = await held(world, 3, retry=RetryPolicy(retries=1))
    await w.report(success(slice, 0, 2), failed(slice, 2, 3), policies=job.policy)

    (ended,) = w.effects.ended
    assert (ended.parcel, ended.lo, ended.hi, ended.job, ended.state) == (parcel, 0, 2, job.id, "success")
    assert w.effects.retried == 1


async def test_an_execution_that_is_not_durable_cannot_be_suspended(world: World):
    _, parcel, w, slice = await held(world, 2, durable=False, retry=RetryPolicy(retries=3))
    await w.report(suspended(slice, world.now() + SECOND))

    assert await world.history(parcel) == [(0, 2, "failed", "permanent")]
