"""Numbers of exchanges: each is decided once, and a repeated exchange gets the same answer."""

import asyncio

import pytest

from horae.model.fleet.protocol import CHANNELS, Exchange
from tests.store_contract.world import World, spans, success


async def lanes(world: World) -> frozenset[int]:
    return frozenset(await world.all_lanes())


async def seen_at(world: World, w) -> int:
    return (await world.rows("SELECT last_seen FROM sessions WHERE id = $1", w.session))[0][0]


async def test_the_next_number_claims_and_is_stamped_on_what_it_claims(world: World):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    reply = await w.exchange(free=2)

    assert (reply.decision, reply.known, spans(reply.granted)) == ("answer", False, [(0, 2)])
    assert await world.store.stamped_slices(w.session, 0, 1) == reply.granted


@pytest.mark.parametrize("times", [1, 3])
async def test_a_repeated_exchange_claims_nothing_and_answers_the_stamp(world: World, times):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    first = await w.exchange(free=2)
    for _ in range(times):
        again = await w.exchange(free=2, n=1)
        assert (again.decision, again.known, again.granted) == ("answer", True, [])

    assert await world.store.stamped_slices(w.session, 0, 1) == first.granted
    assert spans(await world.on("queued")) == [(2, 5)]


async def test_an_old_number_is_answered_with_its_remaining_slices(world: World):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(success(slice, 0, 1), free=1)
    again = await w.exchange(n=1, free=9)

    assert (again.decision, again.known) == ("answer", True)
    assert spans(await world.store.stamped_slices(w.session, 0, 1)) == [(1, 2)]
    assert spans(await world.store.stamped_slices(w.session, 0, 2)) == [(2, 3)]
    assert await world.store.stamped_slices(w.session, 0, 3) == []


async def test_a_gap_is_refused_and_changes_nothing(world: World):
    parcel = await world.parcel(await world.job(), 5)
    w = await world.worker()
    (slice,) = await w.claim(2)
    before = await seen_at(world, w)
    world.clock.advance(5)
    reply = await w.exchange(n=4, free=2, outcomes=[success(slice)], draining=True)

    assert (reply.decision, reply.seen) == ("gap", 1)
    assert await world.states(parcel) == ["running"] * 2 + ["queued"] * 3
    assert await seen_at(world, w) == before
    assert (await world.store.session(w.session)).state == "live"
    assert spans(await w.claim(2)) == [(2, 4)]


async def test_parking_leaves_the_number_free(world: World):
    job = await world.job()
    w = await world.worker()
    parked = await w.exchange(free=2, patient=True)
    await world.parcel(job, 3)

    assert parked.decision == "park"
    assert spans((await w.exchange(free=2, n=1, patient=True)).granted) == [(0, 2)]


async def test_an_exchange_that_cannot_wait_is_answered_empty_and_its_number_taken(world: World):
    job = await world.job()
    w = await world.worker()
    assert await w.claim(2) == []
    await world.parcel(job, 3)

    late = await w.exchange(free=2, n=1)
    assert (late.decision, late.known) == ("answer", True)
    assert await world.store.stamped_slices(w.session, 0, 1) == []
    assert len(await world.on("queued")) == 1


async def test_a_claim_for_parked_exchanges_takes_the_numbers_it_serves(world: World):
    job = await world.job()
    w = await world.worker()
    await w.exchange(free=2, patient=True)
    await world.parcel(job, 3)
    done = await world.store.claim_for_parked([w.parked(2, await lanes(world))], await world.views(), frozenset())

    assert spans(done.running) == [(0, 2)]
    again = await w.exchange(free=2, n=1, patient=True)
    assert (again.decision, again.known) == ("answer", True)
    assert await world.store.stamped_slices(w.session, 0, 1) == done.running


async def test_only_served_exchanges_have_their_number_taken(world: World):
    job = await world.job()
    a, b = await world.worker("a"), await world.worker("b")
    await world.parcel(job)
    may = await lanes(world)
    done = await world.store.claim_for_parked([a.parked(1, may), b.parked(1, may)], await world.views(), frozenset())

    (slice,) = done.running
    other = b if slice.session == a.session else a
    await world.parcel(job)
    assert len(await other.claim(1, n=1)) == 1


async def test_a_claim_for_parked_exchanges_distributes_evenly(world: World):
    await world.parcel(await world.job(), 9)
    workers = [await world.worker(f"w{n}") for n in range(3)]
    may = await lanes(world)
    done = await world.store.claim_for_parked([w.parked(8, may) for w in workers], await world.views(), frozenset())

    got = {w.session: 0 for w in workers}
    for slice in done.running:
        got[slice.session] += slice.hi - slice.lo
    assert set(got.values()) == {3}


async def test_a_parked_exchange_takes_only_from_its_lanes(world: World):
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    await world.parcel(a)
    await world.parcel(b)
    one, two = await world.worker("1"), await world.worker("2")
    done = await world.store.claim_for_parked(
        [one.parked(5, frozenset({a.lane})), two.parked(5, frozenset({b.lane}))], await world.views(), frozenset()
    )

    assert {(s.session, s.job) for s in done.running} == {(one.session, a.id), (two.session, b.id)}


async def test_an_empty_answer_takes_the_number_so_that_no_claim_can(world: World):
    job = await world.job()
    w = await world.worker()
    await w.exchange(free=2, patient=True)
    assert await world.store.answer_empty([(w.session, 0, 1)]) == {(w.session, 0): ("empty", False)}
    await world.parcel(job, 3)

    done = await world.store.claim_for_parked([w.parked(2, await lanes(world), n=1)], await world.views(), frozenset())
    late = await w.exchange(free=2, n=1, patient=True)
    assert done.running == []
    assert (late.decision, late.known) == ("answer", True)
    assert await world.store.stamped_slices(w.session, 0, 1) == []
    assert spans(await world.on("queued")) == [(0, 3)]
    assert len(await w.claim(1, n=2)) == 1


async def test_a_claim_that_came_first_is_the_answer(world: World):
    await world.parcel(await world.job(), 3)
    w = await world.worker()
    await world.store.claim_for_parked([w.parked(2, await lanes(world))], await world.views(), frozenset())

    assert await world.store.answer_empty([(w.session, 0, 1)]) == {(w.session, 0): ("taken", False)}
    assert spans(await world.store.stamped_slices(w.session, 0, 1)) == [(0, 2)]


async def test_an_empty_answer_is_the_heartbeat(world: World):
    w = await world.worker()
    world.clock.advance(5_000_000)
    await world.store.answer_empty([(w.session, 0, 1)])

    assert await seen_at(world, w) == world.now()


async def test_the_empty_answer_of_an_ended_session_takes_nothing(world: World):
    w, unknown = await world.worker(), world.env.new_id()
    await w.lose()
    before = await seen_at(world, w)
    world.clock.advance(5)

    assert await world.store.answer_empty([(w.session, 0, 1), (unknown, 0, 1)]) == {
        (w.session, 0): ("ended", False),
        (unknown, 0): ("ended", False),
    }
    assert await seen_at(world, w) == before


async def test_a_number_is_answered_empty_only_if_it_is_next(world: World):
    w = await world.worker()

    assert await world.store.answer_empty([(w.session, 0, 2)]) == {(w.session, 0): ("taken", False)}
    assert (await w.exchange(n=1)).known is False


async def test_channels_are_numbered_apart(world: World):
    await world.parcel(await world.job(), CHANNELS)
    w = await world.worker()
    for channel in range(CHANNELS):
        assert spans(await w.claim(1, channel=channel)) == [(channel, channel + 1)]

    assert [(s.channel, s.n) for s in await w.holds()] == [(channel, 1) for channel in range(CHANNELS)]
    await world.store.answer_empty([(w.session, 3, 2)])
    assert (await w.exchange(channel=3, n=2)).known
    assert not (await w.exchange(channel=4, n=2)).known


async def test_the_answer_to_a_channel_is_its_own(world: World):
    await world.parcel(await world.job(), 3)
    w = await world.worker()
    await w.claim(1, channel=0)
    await w.claim(2, channel=1)

    assert spans(await world.store.stamped_slices(w.session, 0, 1)) == [(0, 1)]
    assert spans(await world.store.stamped_slices(w.session, 1, 1)) == [(1, 3)]


async def test_an_ended_session_changes_nothing_and_gets_nothing(world: World):
    parcel = await world.parcel(await world.job(), 4)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.lose()
    reply = await w.exchange(free=2, outcomes=[success(slice)])

    assert (reply.decision, reply.granted, reply.ignored) == ("ended", [], [])
    assert await world.states(parcel) == ["running"] * 2 + ["queued"] * 2
    done = await world.store.claim_for_parked([w.parked(2, await lanes(world), n=2)], await world.views(), frozenset())
    assert done.running == []


async def test_an_unknown_session_has_ended(world: World):
    w = await world.worker()
    w.session = world.env.new_id()

    assert (await w.exchange(free=1)).decision == "ended"


async def test_a_draining_session_reports_but_gets_nothing(world: World):
    parcel = await world.parcel(await world.job(), 4)
    w = await world.worker()
    (slice,) = await w.claim(2)
    reply = await w.exchange(free=2, draining=True, outcomes=[success(slice)])
    done = await world.store.claim_for_parked([w.parked(2, await lanes(world))], await world.views(), frozenset())

    assert (reply.decision, reply.granted, reply.draining) == ("answer", [], True)
    assert done.running == []
    assert await world.states(parcel) == ["success"] * 2 + ["queued"] * 2
    assert (await world.store.session(w.session)).state == "draining"


async def test_a_session_asked_to_drain_is_told_so(world: World):
    w = await world.worker()
    assert await world.store.ask_drain(w.session)
    assert not await world.store.ask_drain(w.session)

    assert (await w.exchange(free=1)).draining
    assert await world.store.answer_empty([(w.session, 0, 2)]) == {(w.session, 0): ("empty", True)}


async def test_equal_exchanges_in_one_batch_are_served_once(world: World):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    head = w.head(Exchange(channel=0, n=1, free=2), await lanes(world))
    done = await world.store.exchange([head, head], await world.views(), frozenset(), {})

    first, twin = done.replies
    assert (first.known, spans(first.granted)) == (False, [(0, 2)])
    assert (twin.decision, twin.known) == ("answer", True)
    assert spans(await world.on("queued")) == [(2, 5)]


async def test_a_number_that_comes_too_early_in_a_batch_gets_nothing_of_the_one_before(world: World):
    parcel = await world.parcel(await world.job(), 5)
    w = await world.worker()
    may = await lanes(world)
    heads = [w.head(Exchange(channel=0, n=n, free=2), may) for n in (1, 2)]
    done = await world.store.exchange(heads, await world.views(), frozenset(), {})

    assert spans(done.replies[0].granted) == [(0, 2)]
    assert (done.replies[1].decision, done.replies[1].granted) == ("gap", [])
    assert {s.n for s in await world.on("running", parcel)} == {1}


async def test_sessions_in_one_batch_share_the_work(world: World):
    await world.parcel(await world.job(), 6)
    workers = [await world.worker(f"w{n}") for n in range(3)]
    may = await lanes(world)
    heads = [w.head(Exchange(channel=0, n=1, free=6), may) for w in workers]
    done = await world.store.exchange(heads, await world.views(), frozenset(), {})

    assert [sum(s.hi - s.lo for s in reply.granted) for reply in done.replies] == [2, 2, 2]
    assert all(s.session == w.session for w, reply in zip(workers, done.replies, strict=True) for s in reply.granted)


async def test_parked_exchanges_take_part_in_the_claim_of_their_sessions_next_exchange(world: World):
    await world.parcel(await world.job(), 6)
    w = await world.worker()
    may = await lanes(world)
    head, parked = w.head(Exchange(channel=0, n=1, free=1), may), w.parked(4, may, channel=1)
    done = await world.store.exchange([head], await world.views(), frozenset(), {}, parked=[parked])

    assert sum(s.hi - s.lo for s in done.replies[0].granted) == 1
    assert {s.channel for s in done.replies[0].granted} == {0}
    assert sum(s.hi - s.lo for s in await world.store.stamped_slices(w.session, 1, 1)) == 4
    again = await world.store.claim_for_parked([parked], await world.views(), frozenset())
    assert again.running == []
    assert await world.store.answer_empty([(w.session, 1, 1)]) == {(w.session, 1): ("taken", False)}


async def test_a_parked_exchange_without_a_grant_keeps_its_number(world: World):
    await world.parcel(await world.job(), 1)
    w = await world.worker()
    may = await lanes(world)
    head, parked = w.head(Exchange(channel=0, n=1, free=1), may), w.parked(1, may, channel=1, load=1.0)
    await world.store.exchange([head], await world.views(), frozenset(), {}, parked=[parked])

    assert await world.store.answer_empty([(w.session, 1, 1)]) == {(w.session, 1): ("empty", False)}


async def test_a_repeated_exchange_is_not_parked_twice(world: World):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    may = await lanes(world)
    head, parked = w.head(Exchange(channel=0, n=1, free=2), may), w.parked(2, may)
    done = await world.store.exchange([head], await world.views(), frozenset(), {}, parked=[parked])

    assert spans(done.replies[0].granted) == [(0, 2)]
    assert spans(await world.on("running")) == [(0, 2)]


async def test_reports_in_one_batch_are_written_by_one_statement_per_kind(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 8)
    workers = [await world.worker(f"w{n}") for n in range(8)]
    held = [(await w.claim(1))[0] for w in workers]
    reports = [
        Exchange(channel=0, n=w.numbers[0] + 1, outcomes=[success(s)]) for w, s in zip(workers, held, strict=True)
    ]
    heads = [w.head(up, frozenset()) for w, up in zip(workers, reports, strict=True)]
    statements = world.store.driver.statements
    before = statements.copy()

    await world.store.exchange(heads, [], frozenset(), {})

    written = ("take_running", "insert history", "touch_sessions")
    assert [statements[name] - before[name] for name in written] == [1, 1, 1]
    assert await world.states(parcel) == ["success"] * 8


async def test_one_ended_session_in_a_batch_does_not_harm_the_others(world: World):
    await world.parcel(await world.job(), 2)
    ended, live = await world.worker("a"), await world.worker("b")
    await ended.lose()
    may = await lanes(world)
    done = await world.store.exchange(
        [w.head(Exchange(channel=0, n=1, free=2), may) for w in (ended, live)], await world.views(), frozenset(), {}
    )

    assert [reply.decision for reply in done.replies] == ["ended", "answer"]
    assert spans(done.replies[1].granted) == [(0, 2)]


async def test_one_number_sent_to_many_servers_is_granted_once(world: World):
    await world.parcel(await world.job(), 20)
    w = await world.worker()
    replies = await asyncio.gather(*(w.exchange(free=3, n=1) for _ in range(6)))

    assert sum(not reply.known for reply in replies) == 1
    assert sum(len(reply.granted) for reply in replies) == 1
    assert spans(await world.store.stamped_slices(w.session, 0, 1)) == [(0, 3)]


async def test_an_empty_answer_and_a_claim_at_once_agree(world: World):
    job = await world.job()
    may = await lanes(world)
    for n in range(1, 6):
        w = await world.worker(f"w{n}")
        await world.parcel(job)
        emptied, claimed = await asyncio.gather(
            world.store.answer_empty([(w.session, 0, 1)]),
            world.store.claim_for_parked([w.parked(1, may, n=1)], await world.views(), frozenset()),
        )

        verdict = emptied[w.session, 0][0]
        assert (verdict == "taken") == bool(claimed.running)
        assert await world.store.stamped_slices(w.session, 0, 1) == claimed.running


async def test_reports_and_answers_are_heartbeats(world: World):
    await world.parcel(await world.job(), 2)
    w = await world.worker()
    world.clock.advance(5)
    (slice,) = await w.claim(2)
    assert await seen_at(world, w) == world.now()
    world.clock.advance(5)
    await w.exchange(n=1, outcomes=[success(slice, 0, 1)])
    assert await seen_at(world, w) == world.now()


async def test_prefetch_takes_more_of_its_job(world: World):
    short, long = await world.job("short"), await world.job("long")
    await world.parcel(short, 9, priority=9)
    await world.parcel(long, 9)
    w = await world.worker()
    reply = await w.exchange(free=2, prefetch={short.id: 3})

    assert [(s.job, s.hi - s.lo) for s in reply.granted] == [(short.id, 5)]


async def look(w, *, n=1, channel=0):
    (reply,) = await w.world.store.look([w.head(Exchange(channel=channel, n=n), frozenset(), patient=True)])
    return reply


@pytest.mark.parametrize("n", [1, 2, 3])
async def test_a_look_decides_as_an_exchange_without_work_does(world: World, n):
    w = await world.worker()
    await w.exchange()
    seen = await look(w, n=n)

    assert seen == await w.exchange(n=n, patient=True)
    assert seen.decision == {1: "answer", 2: "park", 3: "gap"}[n]


async def test_a_look_changes_nothing_and_takes_no_locks(world: World):
    w = await world.worker()
    world.clock.advance(5)
    before = await world.rows("SELECT * FROM sessions")
    await look(w)

    assert await world.rows("SELECT * FROM sessions") == before


async def test_a_look_sees_that_a_session_is_asked_to_leave_or_has_ended(world: World):
    w, gone = await world.worker("a"), await world.worker("b")
    await world.store.ask_drain(w.session)
    await gone.lose()

    assert ((await look(w)).decision, (await look(w)).draining) == ("park", True)
    assert (await look(gone)).decision == "ended"
    gone.session = world.env.new_id()
    assert (await look(gone)).decision == "ended"


async def test_looks_are_answered_in_their_order(world: World):
    a, b = await world.worker("a"), await world.worker("b")
    await b.exchange()
    heads = [w.head(Exchange(channel=0, n=1), frozenset(), patient=True) for w in (b, a, b)]

    assert [reply.known for reply in await world.store.look(heads)] == [True, False, True]


async def test_sessions_are_read_together(world: World):
    a, b = await world.worker("a"), await world.worker("b")
    found = await world.store.some_sessions([b.session, world.env.new_id(), a.session, a.session])

    assert found == {w.session: await world.store.session(w.session) for w in (a, b)}


async def test_requests_to_sessions_are_read_together(world: World):
    await world.parcel(await world.job(), 4)
    a, b = await world.worker("a"), await world.worker("b")
    for w in (a, b):
        (slice,) = await w.claim(2)
        for item in (slice.hi - 1, slice.lo):
            await world.store.cancel(slice.parcel, item, "")
    asked = await world.store.requests_of([b.session, a.session])

    assert [[item for _, item, _, _ in asked[w.session]] for w in (a, b)] == [[0, 1], [2, 3]]
    assert asked[b.session] == (await world.store.requests_of([b.session]))[b.session]
