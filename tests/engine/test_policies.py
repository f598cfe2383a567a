"""Effects of queue policies: a complete server on a virtual clock, with workers that only let time pass."""

from collections import Counter
from uuid import UUID

import pytest

from bench.runs.trial import jain, trial
from horae.engine.base.hints import Hint
from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import BadInput, Conflict
from horae.model.admission.claim_plan import plan_claims
from horae.model.admission.policy import quantum
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.protocol import PROTOCOL, Exchange, Register
from horae.model.fleet.submit import Submit
from horae.model.tenancy.principal import DEFAULT_NAMESPACE as NAMESPACE
from horae.store.admission import shares as share_moves
from horae.store.contract import Store
from horae.store.executions.state_changes import FinishedItems
from tests.engine.outage import fails

MS = SECOND // 1000


async def fair(t, **policy):
    await t.queue("work", policy={"kind": "fair", "by": "${params.tenant}", **policy})
    await t.job("job", "work")


def of(tenant, takes):
    return {"takes": takes, "tenant": tenant}


def running(job: UUID, lane: int) -> RunningSlice:
    return RunningSlice(
        parcel=UUID(int=3), lo=0, hi=5, job=job, queue=1, namespace=NAMESPACE, session=UUID(int=2), channel=0, n=1,
        lane=lane, rank=1, queued_at=0, granted_at=0,
    )  # fmt: skip


async def test_a_fair_queue_divides_worker_time_by_weight():
    """The weights are 1 and 3. Parcels have a thousand executions; those of one tenant take a hundred times as long."""
    async with trial(4, ["work"]) as t:
        await fair(t, weights={"long": 3})
        await t.job("other", "work")
        start = t.now
        for _ in range(3):
            t.submit_many(start, "job", [of("short", 10 * MS)] * 1000)
        t.submit_many(start, "other", [of("long", SECOND)] * 100)

        await t.run(start + 20 * SECOND)

    got = Counter[str]()
    for one in t.ran:
        got[one.params["tenant"]] += one.ended_at - one.started_at
    assert jain([got["short"], got["long"] / 3]) >= 0.98


async def test_a_light_tenant_hardly_waits_behind_one_that_submitted_thousands():
    async with trial(2, ["work"]) as t:
        await fair(t)
        start = t.now
        t.submit_many(start, "job", [of("heavy", 100 * MS)] * 1000)
        for i in range(20):
            t.submit(start + (5 + i) * SECOND // 4, "job", 100 * MS, params={"tenant": "light"})

        await t.run(start + 8 * SECOND)

    waits = [one.wait for one in t.ran if one.params["tenant"] == "light"]
    assert len(waits) == 20
    assert max(waits) <= 100 * MS  # the wait for a free slot


async def test_an_unused_reserve_is_lent_to_other_shares():
    async with trial(4, ["work"]) as t:
        await fair(t, weights={"batch": 100}, reserve={"acme": 2})
        start = t.now
        t.submit_many(start, "job", [of("batch", SECOND)] * 100)
        t.submit_many(start + 3 * SECOND, "job", [of("acme", SECOND)] * 10)

        await t.run(start + 12 * SECOND)

    began = Counter((one.started_at - start) // SECOND for one in t.ran if one.params["tenant"] == "acme")
    assert sum(one.params["tenant"] == "batch" for one in t.ran if one.started_at < start + 3 * SECOND) == 12
    assert sum(began.values()) == 10
    assert max(began.values()) <= 3  # its two reserved slots, and its share of the others


async def test_a_lane_that_gets_more_while_a_claim_empties_it_is_taken_from_again():
    """Executions that arrived meanwhile were granted, too: the lane counts as occupied by an unknown amount."""
    async with trial(1, ["work"]) as t:
        await fair(t)
        directory, tell = t.node.base.directory, t.node.base.hints.send_locally
        lane = (await directory.jobs.get(NAMESPACE, "job")).lane
        tell(Hint(lanes={lane: 1}, amounts={lane: 3}))
        before = directory.marks()
        tell(Hint(lanes={lane: 2}, amounts={lane: 2}))

        directory.learn_from_grant(lane, [running(UUID(int=1), lane)])
        directory.learn_from_claim({lane: None}, before)

        assert [turn.lane.lane for turn in plan_claims(directory.lane_states(), 1)] == [lane]


async def test_a_new_share_gets_grants_of_the_usual_size_of_its_queue():
    async with trial(4, ["work"]) as t:
        await fair(t)
        t.submit_many(t.now, "job", [of("known", 10 * MS)] * 40)
        await t.run(t.now + SECOND)
        for tenant in ("known", "new"):
            await t.node.submitter.submit_bulk(
                NAMESPACE, Submit(job="job"), [b'{"tenant":"%b"}' % tenant.encode()] * 40, origin="submit"
            )

        at_a_time = {view.share: quantum(view.expected) for view in t.node.base.directory.lane_states()}

    assert at_a_time["new"] == at_a_time["known"] > 1


async def test_estimates_of_a_lane_use_its_own_slices_or_those_of_its_queue():
    """The estimate of a lane with one job is the present expectation of that job."""
    async with trial(4, ["work"]) as t:
        await fair(t)
        for tenant in ("known", "new"):
            await t.node.submitter.submit_bulk(
                NAMESPACE, Submit(job="job"), [b'{"tenant":"%b"}' % tenant.encode()] * 40, origin="submit"
            )
        directory = t.node.base.directory
        known, new = sorted(view.lane for view in directory.lane_states())
        job = (await directory.jobs.get(NAMESPACE, "job")).job.id
        directory.learn_from_grant(known, [running(job, known)])
        directory.estimates.learn_sizes({known: 8.0}, directory.lanes)
        directory.expectations.learn([FinishedItems(UUID(int=3), 0, 1, job, NAMESPACE, "success", 20 * MS)])

        views = {view.lane: view for view in directory.lane_states()}

    assert (views[known].mean, views[new].mean) == (8.0, 8.0)
    assert views[known].expected == 20 * MS


async def test_estimates_of_a_lane_are_forgotten_with_the_lane():
    async with trial(1, ["work"]) as t:
        await fair(t)
        directory, gone = t.node.base.directory, 999
        estimates, job = directory.estimates, await directory.jobs.get(NAMESPACE, "job")
        for lane in (job.lane, gone):
            t.node.base.hints.send_locally(Hint(lanes={lane: 1}, amounts={lane: 9}))
            directory.learn_from_grant(lane, [running(job.job.id, lane)])
            estimates.learn_sizes({lane: 8.0}, directory.lanes)

        await directory.load()

    for known in (directory._hinted, estimates.amounts, estimates.jobs, estimates._sizes, estimates._times):
        assert (job.lane in known, gone in known) == (True, False)


async def test_shares_are_charged_by_execution_on_request():
    async with trial(4, ["work"]) as t:
        await fair(t, charge="executions")
        await t.job("other", "work")
        start = t.now
        t.submit_many(start, "job", [of("short", 100 * MS)] * 200)
        t.submit_many(start, "other", [of("long", SECOND)] * 200)

        await t.run(start + 30 * SECOND)

    began = Counter(one.params["tenant"] for one in t.ran)
    assert abs(began["short"] - began["long"]) <= 20


async def test_a_priority_precedes_only_executions_within_its_lead():
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy={"kind": "priority", "ageing": "1s"})
        await t.job("job", "work")
        start = t.now
        t.submit(start, "job", 500 * MS, priority=9)
        t.submit(start + 1, "job", 500 * MS, priority=0, params={"old": True})
        for i in range(60):
            t.submit(start + 1 + i * 400 * MS, "job", 500 * MS, priority=9)

        await t.run(start + 40 * SECOND)

    old = next(one for one in t.ran if one.params.get("old"))
    later = [one for one in t.ran if one.arrived_at > old.arrived_at + 9 * SECOND]
    assert later
    assert all(one.started_at > old.started_at for one in later)
    assert any(one.started_at < old.started_at for one in t.ran if one.arrived_at > old.arrived_at)


async def test_a_strict_priority_lets_the_higher_level_go_first_always():
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy={"kind": "priority", "strict": True})
        await t.job("job", "work")
        start = t.now
        t.submit(start, "job", SECOND, priority=5)
        t.submit(start + 1, "job", SECOND, priority=1)
        for i in range(30):
            t.submit(start + i * SECOND, "job", SECOND, priority=9)

        await t.run(start + 40 * SECOND)

    assert t.ran[-1].started_at == start + 31 * SECOND
    assert [one.arrived_at - start for one in t.ran[:2]] == [0, 0] or t.ran[0].arrived_at == start


async def test_the_earliest_deadline_first_meets_all_that_can_be_met():
    lengths = [7, 1, 5, 3, 2, 6, 4]
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy="deadline")
        await t.job("job", "work")
        start = t.now
        for k in lengths:
            t.submit(start, "job", SECOND, deadline=start + k * SECOND)

        await t.run(start + 20 * SECOND)

    assert len(t.ran) == 7
    assert all(one.deadline is not None and one.ended_at <= one.deadline for one in t.ran)


async def test_the_shortest_first_waits_less_on_the_whole_and_the_long_one_runs_too():
    async def mean_wait(policy):
        async with trial(1, ["work"]) as t:
            await t.queue("work", policy=policy)
            for name, takes in (("short", 100 * MS), ("long", 5 * SECOND)):
                await t.job(name, "work")
                t.submit(t.now, name, takes)
            start = t.now
            await t.run(start + 6 * SECOND)  # it learns
            begun = t.now
            t.submit(begun, "short", 100 * MS)
            t.submit(begun + 1, "long", 5 * SECOND)
            for i in range(20):
                t.submit(begun + 2 + i, "short", 100 * MS)
            await t.run(begun + 60 * SECOND)
        waits = [one.wait for one in t.ran if one.arrived_at >= begun]
        assert len(waits) == 22
        return sum(waits) / len(waits)

    assert await mean_wait("shortest") < await mean_wait("fifo") / 2


async def test_a_worker_divides_its_time_by_the_weights_of_its_queues():
    async with trial(2, ["critical", "default"], weights={"critical": 4}) as t:
        await t.queue("critical", policy="fifo")
        for name, queue in (("a", "critical"), ("b", "default")):
            await t.job(name, queue)
            t.submit_many(t.now, name, [{"takes": 100 * MS}] * 1000)

        await t.run(t.now + 20 * SECOND)

    began = Counter(one.job for one in t.ran)
    assert abs(began["a"] / began["b"] - 4) < 0.8


async def test_a_worker_with_an_order_takes_the_second_queue_when_the_first_is_empty():
    async with trial(1, ["critical", "default"], strict=True) as t:
        await t.queue("critical", policy="fifo")
        await t.job("a", "critical")
        await t.job("b", "default")
        start = t.now
        t.submit_many(start, "b", [{"takes": 100 * MS}] * 10)
        t.submit_many(start + 250 * MS, "a", [{"takes": 100 * MS}] * 5)

        await t.run(start + 5 * SECOND)

    assert [one.job for one in t.ran] == [*"bbb", *"aaaaa", *"bbbbbbb"]


async def test_a_policy_that_changes_orders_what_is_queued_and_shares_move_to_their_lanes():
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy="fifo")
        await t.job("job", "work")
        start = t.now
        t.submit_many(start, "job", [of("heavy", SECOND)] * 50 + [of("light", SECOND)] * 2)
        await t.run(start + 2 * SECOND)

        await fair(t)
        await t.node.admission.reranker.step()
        await t.run(start + 10 * SECOND)

    assert [one.params["tenant"] for one in t.ran].count("light") == 2


async def test_a_submission_with_an_invalid_share_is_refused():
    async with trial(1, ["work"]) as t:
        await fair(t)

        with pytest.raises(BadInput, match="there is no 'tenant'") as refused:
            await t.node.submitter.submit(NAMESPACE, [Submit(job="job")], origin="submit")
        receipts, wrong = await t.node.submitter.submit_bulk(
            NAMESPACE, Submit(job="job"), [b'{"tenant":"a"}', b"{}", b'{"tenant":"b"}'], origin="submit", partial=True
        )

    assert "${params.tenant}" in refused.value.remedy
    assert (sum(receipt.count for receipt in receipts), list(wrong)) == (2, [1])


async def test_a_past_or_ambiguous_deadline_is_refused():
    async with trial(1) as t:
        await t.job("job", "default")
        for how in ({"deadline": t.now - 1}, {"deadline": t.now + 5, "within": 9}, {"within": 0}):
            with pytest.raises(BadInput):
                await t.node.submitter.submit(NAMESPACE, [Submit(job="job", **how)], origin="submit")


async def test_a_drained_queue_runs_what_it_has_and_accepts_nothing():
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy="fifo")
        await t.job("job", "work")
        t.submit_many(t.now, "job", [{"takes": SECOND}] * 3)
        await t.run(t.now + SECOND // 2)

        await t.node.admission.queues.set_state(NAMESPACE, "work", "draining")
        with pytest.raises(Conflict, match="drained"):
            await t.node.submitter.submit(NAMESPACE, [Submit(job="job")], origin="submit")
        await t.run(t.now + 5 * SECOND)

        assert len(t.ran) == 3
        await t.node.admission.queues.set_state(NAMESPACE, "work", "active")
        assert await t.node.submitter.submit(NAMESPACE, [Submit(job="job")], origin="submit")


async def test_jobs_that_name_no_queue_go_to_the_default():
    async with trial(1) as t:
        await t.queue("mail", default=True)
        one, _ = await t.node.definitions.jobs.put(NAMESPACE, {"name": "a", "command": ["true"]})
        await t.queue("other", default=True)
        two, _ = await t.node.definitions.jobs.put(NAMESPACE, {"name": "b", "command": ["true"]})

        assert (one.queue, two.queue) == ("mail", "other")
        assert not (await t.node.admission.queues.get(NAMESPACE, "mail")).is_default


async def test_a_purge_asks_for_the_name_and_cancels_what_has_not_begun():
    async with trial(1, ["work"]) as t:
        await fair(t)
        start = t.now
        t.submit_many(start, "job", [of("a", SECOND), of("b", SECOND), of("a", SECOND)])
        t.submit(start, "job", SECOND, delay=SECOND, params={"tenant": "a"})
        await t.run(start)

        with pytest.raises(BadInput, match="has not begun"):
            await t.node.admission.queues.purge(NAMESPACE, "work", None, "me")
        done = await t.node.admission.queues.purge(NAMESPACE, "work", "work", "me")
        await t.run(start + 9 * SECOND)

    assert done.cancelled == 3
    assert len(t.ran) == 1


@pytest.mark.parametrize("quiet", [0, 3600 * SECOND], ids=["at once", "after a quiet hour"])
async def test_grants_of_another_server_are_charged_here(world, quiet):
    """Two servers share a store: each one accounts for the grants of the other since its own start."""
    if world.driver.dialect != "postgresql":
        pytest.skip("several servers need PostgreSQL")
    one, two = nodes = [ServerNode(world.env, Store(world.driver, world.env)) for _ in range(2)]
    for node in nodes:
        await node.prepare()
        await node.fleet.presence.step()
    await one.admission.queues.put(NAMESPACE, "work", {"policy": {"kind": "fair", "by": "${params.tenant}"}})
    await one.definitions.jobs.put(NAMESPACE, {"name": "job", "command": ["true"], "queue": "work"})
    register = Register(protocol=PROTOCOL, worker="w", concurrency=15, queues=("work",))
    session = (await one.gateway.register(NAMESPACE, register)).session_id
    items = [b'{"tenant":"heavy"}'] * 19 + [b'{"tenant":"light"}']
    await one.submitter.submit_bulk(NAMESPACE, Submit(job="job"), items, origin="submit")
    await look(one)
    if quiet:  # what the first server granted before the second one starts is not charged there
        await one.gateway.exchange(NAMESPACE, session, Exchange(channel=0, n=1, free=5))
        await one.base.directory.fair.step()
        world.clock.advance(quiet)
        one.base.directory.fair._record((0, "of another queue"), 1.0)
        await one.base.directory.fair.step()
    await look(two)

    await one.gateway.exchange(NAMESPACE, session, Exchange(channel=0, n=2 if quiet else 1, free=5))
    for node in (one, two, one, two):
        await node.base.directory.fair.step()
        world.clock.advance(SECOND)

    heard = {view.share: view.virtual for view in two.base.directory.lane_states()}
    assert heard["heavy"] == (5 if quiet else 4) * SECOND  # a job that never ran is expected to take one second
    for node in nodes:
        await node.gateway.stop()
        await node.submitter.close()


async def look(node: ServerNode) -> None:
    await node.base.directory.load()
    await node.base.directory.step()
    await node.base.directory.fair.step()


async def test_a_reserve_counts_slots():
    async with trial(4, ["work"]) as t:
        await t.queue("work", policy={"kind": "fair", "by": "${params.tenant}", "reserve": {"acme": 4}})
        await t.job("job", "work", slots=2)
        t.submit_many(t.now, "job", [of("acme", SECOND)] * 9)
        await t.run(t.now + SECOND // 2)
        running = len(t._busy)
        assert running
        for _ in ("as charged", "as counted"):
            (view,) = t.node.base.directory.lane_states()
            await t.node.base.directory.fair.step()
            assert view.owed == 4 - 2 * running


async def test_charges_are_written_although_the_first_transaction_fails(monkeypatch):
    async with trial(1, ["work"]) as t:
        await fair(t)
        t.submit(t.now, "job", SECOND, params={"tenant": "a"})
        await t.run(t.now)
        shares = t.node.base.directory.fair
        monkeypatch.setattr(t.node.store.database, "is_shared", True)
        unsent = set(shares._unsent)
        assert unsent
        shares._used = used = {(await t.node.base.directory.jobs.get(NAMESPACE, "job")).lane}
        await fails(monkeypatch, shares, share_moves, "exchange_charges")
        assert shares._unsent == unsent
        await fails(monkeypatch, shares, share_moves, "touch")
        assert (shares._unsent, shares._used) == (set(), used)
