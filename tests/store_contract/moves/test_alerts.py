"""Alerts in the store: one open alert per rule and subject, with notices that the last claiming server delivers."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from horae.env import SECOND
from horae.features.alerts.model.channel import Webhook
from horae.features.alerts.model.findings import JobOutcomes, RuleFinding
from horae.features.alerts.model.notification import read_content
from horae.features.alerts.model.rule import AnyRule, Lag, MissingSuccess
from horae.features.alerts.store import alerts, notices, reads, rules
from horae.features.alerts.store.alerts import LAST, SettleResult
from horae.features.alerts.store.rules import StoredRule
from horae.features.statistics.store import statistics
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.base.ids import execution_id
from horae.model.executions.streak import Streak
from horae.model.executions.tally import JobTally, begin_of
from horae.model.executions.tally import OutcomeCounts as Counted
from horae.model.fleet.protocol import Started
from horae.model.triggers.decisions.values import Once
from tests.store_contract.world import NAMESPACE, World, add_trigger, failed, success, suspended

RULE = Lag(after=MINUTE, channels=("ops", "mail"), repeat_every=HOUR)


async def made(world: World, rule: AnyRule = RULE, name: str = "late") -> StoredRule:
    return await world.store.change(lambda now: rules.put_rule(NAMESPACE, name, rule, now))


async def settle(world: World, stored: StoredRule, *subjects: str) -> SettleResult:
    world.clock.advance(1)  # checks of a rule follow one another
    found = [RuleFinding(subject=subject, message=f"{subject} is late") for subject in subjects]
    return await world.store.change(lambda now: alerts.settle(stored, found, world.env.new_id, now))


async def claim(world: World, *channels: str) -> list[notices.Notice]:
    found = []
    for channel in channels or ("mail", "ops"):
        found += await world.store.change(
            lambda now, channel=channel: notices.claim(NAMESPACE, channel, now, now + MINUTE, 10)
        )
    return found


async def test_an_alert_opens_once_with_a_notice_for_each_channel_and_its_end_is_sent(world: World):
    stored = await made(world)
    first = await settle(world, stored, "a")
    again = await settle(world, stored, "a")
    (alert,) = first.opened
    assert (alert.subject, first.notices, again) == ("a", 2, SettleResult())
    assert sorted((n.channel, n.kind, n.alert) for n in await claim(world)) == [
        ("mail", "firing", alert.id), ("ops", "firing", alert.id),
    ]  # fmt: skip

    world.clock.advance(MINUTE)
    over = await settle(world, stored)
    assert ([one.id for one in over.recovered], over.notices) == ([alert.id], 2)
    (shown,) = await world.store.read(lambda: alerts.page(NAMESPACE, LAST, 10))
    assert (shown.state, shown.recovered_at) == ("recovered", world.now())
    assert await world.store.read(lambda: alerts.page(NAMESPACE, LAST, 10, firing=True)) == []
    assert len((await settle(world, stored, "a")).opened) == 1, "it is a new one"


async def test_findings_of_an_older_or_paused_rule_change_nothing(world: World):
    old = await made(world)
    new = await made(world, Lag(after=MINUTE))
    assert await settle(world, old, "a") == SettleResult()
    await settle(world, new, "a")
    await world.store.change(lambda now: rules.set_rule_state(NAMESPACE, "late", "paused", now))
    await world.store.change(lambda now: rules.end_open(NAMESPACE, "late", now))
    assert await settle(world, new, "a") == SettleResult()
    assert [one.state for one in await world.store.read(lambda: alerts.page(NAMESPACE, LAST, 9))] == ["recovered"]
    assert await world.store.read(lambda: rules.active((0, ""))) == []
    await world.store.write(lambda: rules.delete_rule(NAMESPACE, "late"))
    assert await settle(world, new, "a") == SettleResult()
    world.clock.advance(SECOND)
    other = await made(world)
    assert other.revision == old.revision
    assert await settle(world, old, "a") == SettleResult(), "it is another rule with the same name"


async def test_reminders_stop_with_the_first_acknowledgement(world: World):
    stored = await made(world)
    (alert,) = (await settle(world, stored, "a")).opened
    world.clock.advance(HOUR)
    assert (await settle(world, stored, "a")).notices == 2
    for who in ("key:1", "key:2"):
        known = await world.store.change(lambda now, who=who: alerts.acknowledge(alert.id, NAMESPACE, who, now))
        assert known is not None
        assert known.acknowledged_by == "key:1"
    world.clock.advance(HOUR)
    assert (await settle(world, stored, "a")).notices == 0
    told = await world.store.read(lambda: notices.deliveries([alert.id]))
    assert sorted((one.kind, one.channel) for one in told[alert.id]) == [
        ("firing", "mail"), ("firing", "ops"), ("reminder", "mail"), ("reminder", "ops"),
    ]  # fmt: skip
    assert await world.store.change(lambda now: alerts.acknowledge(alert.id, NAMESPACE + 1, "key:9", now)) is None


async def test_in_a_storm_one_notice_covers_all_alerts_and_each_has_its_delivery_state(world: World):
    stored = await made(world, Lag(after=MINUTE, channels=("ops",), at_most=Rate(1, HOUR, 1)))
    many = [f"job-{n:03}" for n in range(400)]
    storm = await settle(world, stored, *many)
    assert (len(storm.opened), storm.notices) == (400, 1)
    assert (await settle(world, stored, *many, "late")).notices == 0, "there is no room"
    (letter,) = await claim(world, "ops")
    assert read_content(letter.content).data["count"] == 400
    await world.store.write(lambda: notices.settle(letter, "delivered", 0, "", world.now()))
    told = await world.store.read(lambda: notices.deliveries([storm.opened[0].id, storm.opened[399].id]))
    assert {(one.kind, one.state, one.attempts) for some in told.values() for one in some} == {
        ("firing", "delivered", 1)
    }

    over = await settle(world, stored)
    assert (len(over.recovered), over.notices) == (401, 1), "whoever heard of them hears that they are over"
    (end,) = await claim(world, "ops")
    assert (end.kind, read_content(end.content).data["count"]) == ("recovered", 400)
    world.clock.advance(HOUR)
    await settle(world, stored, "again")
    (_, again) = [one for one in await claim(world, "ops") if one.state == "pending"]
    assert read_content(again.content).data["unnotified"] == 1, "the next notice reports it"


async def test_notices_of_an_alert_reach_a_channel_in_order(world: World):
    stored = await made(world)
    await settle(world, stored, "a")
    (first,) = await claim(world, "ops")
    await settle(world, stored, "a", "b")
    await claim(world, "ops")
    await settle(world, stored, "b")
    assert await claim(world, "ops") == [], "that a is over waits for whoever tells that it began"
    later = world.now() + HOUR
    await world.store.write(lambda: notices.settle(first, "pending", later, "busy", None))
    assert await claim(world, "ops") == [], "and for its next try"
    assert [one.kind for one in await claim(world, "mail")] == ["firing", "firing"], "others wait for nothing"
    world.clock.advance(HOUR)
    again = next(one for one in await claim(world, "ops") if one.id == first.id)
    await world.store.write(lambda: notices.settle(again, "delivered", 0, "", world.now()))
    assert [one.kind for one in await claim(world, "ops")] == ["recovered"]


async def test_the_end_of_a_group_is_sent_after_all_its_beginnings(world: World):
    stored = await made(world, Lag(after=MINUTE, channels=("ops",)))
    await settle(world, stored, "a")
    (lone,) = await claim(world, "ops")
    await settle(world, stored, *"abcde")
    (group,) = await claim(world, "ops")
    await world.store.write(lambda: notices.settle(group, "delivered", 0, "", world.now()))
    assert (await settle(world, stored)).notices == 1
    assert await claim(world, "ops") == []
    await world.store.write(lambda: notices.settle(lone, "failed", 0, "gone", world.now()))
    assert [one.kind for one in await claim(world, "ops")] == ["recovered"]


async def test_the_end_is_sent_to_the_channels_that_got_the_beginning(world: World):
    await settle(world, await made(world), "a")
    changed = await made(world, Lag(after=MINUTE, channels=("ops", "pager")))
    await settle(world, changed)
    ends = [one for channel in ("mail", "ops", "pager") for one in await pending(world, channel)]
    assert [(one.channel, one.kind) for one in ends] == [
        ("mail", "firing"), ("mail", "recovered"), ("ops", "firing"), ("ops", "recovered"),
    ]  # fmt: skip


async def pending(world: World, channel: str) -> list[notices.Notice]:
    """Return the pending notices of a channel, in the order of delivery."""
    found: list[notices.Notice] = []
    while some := await claim(world, channel):
        for one in some:
            await world.store.write(lambda one=one: notices.settle(one, "delivered", 0, "", world.now()))
        found += some
    return found


async def test_channels_with_something_pending_are_found_one_by_one(world: World):
    await settle(world, await made(world), "a", "b")
    now = world.now()
    assert await world.store.read(lambda: notices.channels(notices.START, 10)) == [
        notices.PendingChannel(NAMESPACE, "mail", now), notices.PendingChannel(NAMESPACE, "ops", now),
    ]  # fmt: skip
    following = await world.store.read(lambda: notices.channels((NAMESPACE, "mail"), 10))
    assert [one.channel for one in following] == ["ops"]
    await world.store.write(lambda: notices.give_up(NAMESPACE, "ops", "the channel was removed", now))
    left = await world.store.read(lambda: notices.channels(notices.START, 10))
    assert [one.channel for one in left] == ["mail"]


async def test_a_lost_claim_passes_to_another_server_and_its_result_is_ignored(world: World):
    await settle(world, await made(world), "a")
    (mine, other) = await claim(world)
    assert await claim(world) == []
    assert await world.store.write(lambda: notices.settle(other, "delivered", 0, "", world.now()))
    world.clock.advance(MINUTE)
    (theirs,) = await claim(world)
    assert (theirs.id, theirs.attempts) == (mine.id, 2)
    assert not await world.store.write(lambda: notices.settle(mine, "failed", 0, "too late", world.now()))
    later = world.now() + SECOND
    assert await world.store.write(lambda: notices.settle(theirs, "pending", later, "busy", None))
    assert (await claim(world), await world.store.read(notices.next_due)) == ([], later)
    world.clock.advance(SECOND)
    (third,) = await claim(world)
    await world.store.write(lambda: notices.release(theirs, world.now()))
    assert await claim(world) == [], "it is claimed by another server now"
    await world.store.write(lambda: notices.release(third, world.now()))
    assert [one.attempts for one in await claim(world)] == [4]
    assert await world.rows("SELECT last_error FROM alert_notices WHERE state = 'pending'") == [("busy",)]


async def test_closed_alerts_are_deleted_after_their_retention(world: World):
    stored = await made(world)
    await settle(world, stored, "a")
    for one in await claim(world):
        await world.store.write(lambda one=one: notices.settle(one, "delivered", 0, "", world.now()))
    await settle(world, stored)
    later = world.now() + 1
    assert await world.store.write(lambda: notices.forget(later, 10)) == 2
    assert await world.store.write(lambda: alerts.forget(later, 10)) == 1
    assert await world.store.write(lambda: alerts.forget(later, 10)) == 0


async def test_a_channel_is_written_read_sealed_anew_and_missed_by_rules(world: World):
    hook = Webhook(url="https://x/")
    for sealed in (b"1", b"2"):
        kept = await world.store.change(
            lambda now, sealed=sealed: rules.put_channel(NAMESPACE, "ops", hook, sealed, now)
        )
    assert (kept.revision, kept.sealed, kept.channel.public, kept.shown) == (
        2,
        b"2",
        {},
        {"url": "https://x/...", "headers": []},
    )
    assert await world.store.write(lambda: rules.reseal(kept, b"3"))
    assert not await world.store.write(lambda: rules.reseal(kept, b"4"))
    assert [one.sealed for one in await world.store.read(lambda: rules.all_channels((0, "")))] == [b"3"]
    await made(world)
    assert await world.store.read(lambda: rules.rules_naming(NAMESPACE, "ops")) == ["late"]
    assert await world.store.read(lambda: rules.rules_naming(NAMESPACE, "nobody")) == []


async def test_rates_and_successes_are_read_from_minutes(world: World):
    job, minute = await world.job("etl"), world.now() // MINUTE
    counts = {
        (job.id, minute - 100): Counted(success=5),
        (job.id, minute - 2): Counted(success=1, failed=2, retried=3),
    }
    await world.store.write(lambda: statistics.add(world.env.new_id(), counts))
    await world.store.write(lambda: statistics.add(world.env.new_id(), counts))
    now = world.now()

    assert await world.store.read(lambda: reads.recently_troubled(minute - 3)) == {job.id}
    assert await world.store.read(lambda: reads.recently_troubled(minute - 1)) == set()
    assert await world.store.read(lambda: reads.outcomes({job.id: HOUR}, now)) == {job.id: JobOutcomes(2, 4, 6)}
    assert await world.store.read(lambda: reads.succeeded_within([job.id], HOUR, now)) == {job.id}
    assert await world.store.read(lambda: reads.succeeded_within([job.id], MINUTE, now)) == set()
    for subjects in (("etl",), ("e*",), ("*", "etl")):
        of = MissingSuccess(after=DAY, subjects=subjects)
        found = await world.store.read(lambda of=of: reads.jobs_of_rule(NAMESPACE, of))
        assert [(one.name, at) for one, at in found] == [("etl", world.now())]


async def test_running_and_failed_executions_are_read_newest_first(world: World):
    job = await world.job("etl")
    worker = await world.worker("w")
    for outcome in (success, success, failed, failed):
        await world.parcel(job)
        (held,) = await worker.claim(1)
        begun = Started(parcel=held.parcel, lo=held.lo, hi=held.hi, attempt=held.attempt, at=world.now())
        await worker.exchange(started=[begun])
        world.clock.advance(10 * SECOND)
        await worker.report(outcome(held), policies=job.policy)
    assert (await failures(world, job.id))[job.id].failures == 2
    assert await world.store.read(lambda: reads.recently_failed([job.id], 3)) == {job.id}
    since = world.now() - 25 * SECOND
    assert await world.store.read(lambda: reads.recently_succeeded([job.id], since)) == {job.id}
    assert await world.store.read(lambda: reads.recently_succeeded([job.id], since + 10 * SECOND)) == set()

    parcel = await world.parcel(job)
    (held,) = await worker.claim(1)
    begun = Started(parcel=held.parcel, lo=held.lo, hi=held.hi, attempt=held.attempt, at=world.now())
    await worker.exchange(started=[begun])
    world.clock.advance(MINUTE)
    (long,) = await world.store.read(lambda: reads.running_since(world.now() - 30 * SECOND))
    assert (long.parcel, long.job, long.started_at) == (parcel, job.id, world.now() - MINUTE)
    assert await world.store.read(lambda: reads.running_since(world.now() - 2 * MINUTE)) == []


async def failures(world: World, *jobs: UUID) -> dict[UUID, Streak]:
    return await world.store.read(lambda: reads.failures_in_a_row(jobs, 3))


async def test_failures_in_a_row_count_from_the_last_success_in_any_order_of_starts(world: World):
    job, other, none = await world.job("etl"), await world.job("other"), await world.job("none")
    worker = await world.worker("w")
    parcels = [await world.parcel(job, 3), *[await world.parcel(job) for _ in range(3)], await world.parcel(other)]
    held = {one.parcel: one for one in await worker.claim(20)}

    async def end(number: int, outcome: Callable[..., Any]) -> None:
        world.clock.advance(SECOND)
        await worker.report(outcome(held[parcels[number]]), policies=job.policy | other.policy)

    await end(3, failed)
    await end(1, success)
    await end(0, failed)
    await end(4, success)
    assert await failures(world, job.id, other.id, none.id) == {job.id: Streak(3, execution_id(parcels[0], 2))}
    await end(2, success)
    assert await failures(world, job.id, other.id) == {}
    assert await world.store.read(lambda: reads.recently_failed([job.id, other.id, none.id], 3)) == {job.id}


async def test_the_newest_execution_decides_between_ends_at_one_instant(world: World):
    job = await world.job("etl")
    worker = await world.worker("w")
    for outcomes, count in (((success, failed), 1), ((failed, success), 0)):
        for _ in range(2):
            await world.parcel(job)
        held = sorted(await worker.claim(2), key=lambda one: one.parcel)
        given = [outcome(one) for outcome, one in zip(outcomes, held, strict=True)]
        await worker.report(*given, policies=job.policy)
        found = await failures(world, job.id)
        assert (found[job.id].failures if found else 0) == count
        world.clock.advance(SECOND)


async def test_the_oldest_execution_of_a_queue_is_found_at_every_priority(world: World):
    job = await world.job("etl", queue="slow")
    await world.parcel(job, priority=0)
    world.clock.advance(HOUR)
    await world.parcel(job, priority=9)
    await world.do("UPDATE queued SET rank = rank - 81064793292668928 WHERE queued_at = $1", world.now())
    oldest = await world.store.read(lambda: reads.oldest_queued([job.lane]))
    assert oldest == {(NAMESPACE, "slow"): world.now() - HOUR}


async def test_deadlines_are_found_while_executions_have_not_ended(world: World):
    job = await world.job("etl")
    parcel, ended = await world.parcel(job), await world.parcel(job)
    deadline = world.now() + HOUR
    await world.do("UPDATE parcels SET deadline = $1", deadline)
    await world.store.cancel(ended, 0, "")
    now = world.now()
    assert await world.store.read(lambda: reads.nearing_deadlines(now, now + HOUR, now)) == [
        reads.DueParcel(parcel, job.id, deadline, now, 0, 0)
    ]
    assert await world.store.read(lambda: reads.nearing_deadlines(now, now + MINUTE, now)) == []
    assert [one.parcel for one in await world.store.read(lambda: reads.still_due([parcel, ended], now))] == [parcel]


async def test_the_unfinished_item_of_a_parcel_that_starts_last_is_found(world: World):
    job, worker = await world.job("etl"), await world.worker()
    parcel = await world.parcel(job, 3)
    await world.do("UPDATE parcels SET deadline = $1", world.now() + HOUR)

    async def last() -> tuple[int, int, int | None]:
        (due,) = await world.store.read(lambda: reads.still_due([parcel], world.now()))
        return due.begins_at, due.item, due.queued

    (first,) = await worker.claim(1)
    await worker.report(success(first))
    (second,) = await worker.claim(1)
    world.clock.advance(SECOND)
    assert await last() == (world.now(), 2, 2), "queued"
    (third,) = await worker.claim(1)
    started_at = world.now()
    world.clock.advance(SECOND)
    assert await last() == (started_at, 2, None), "running"
    await worker.report(suspended(second, world.now() + HOUR))
    assert await last() == (world.now() + HOUR, 1, None), "waiting"
    await worker.report(success(third))
    assert (await last())[1] == 1


async def test_workers_are_silent_then_lost_until_they_come_back(world: World):
    worker = await world.worker("w")
    seen = world.now()
    world.clock.advance(MINUTE)
    assert await silent(world, world.now()) == {"w": seen}
    assert await silent(world, seen) == {}
    await worker.lose()
    assert await silent(world, world.now()) == {}
    assert await lost(world) == {"w": world.now()}
    assert await world.store.read(lambda: reads.lost_workers(NAMESPACE + 1)) == {}
    assert await world.store.read(lambda: reads.workers_not_lost(NAMESPACE)) == set()
    world.clock.advance(MINUTE)
    back = await world.worker("w")
    assert await lost(world) == {}
    await world.do("UPDATE sessions SET state = 'closed', ended_at = $2 WHERE id = $1", back.session, world.now())
    assert await lost(world) == {}, "it came back, and left"
    assert await world.store.read(lambda: reads.workers_not_lost(NAMESPACE)) == {"w"}
    world.clock.advance(MINUTE)
    await (await world.worker("w")).lose()
    assert await lost(world) == {"w": world.now()}


async def test_each_of_very_many_silent_or_lost_workers_is_found(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reads, "MOST", 2)
    seen = world.now()
    names = ["a", "b", "c", "d", "e"]
    workers = [await world.worker(name) for name in [*names, "a", "a", "a"]]
    world.clock.advance(MINUTE)
    assert await silent(world, world.now()) == dict.fromkeys(names, seen)
    for worker in workers:
        world.clock.advance(MINUTE)
        await worker.lose()
    found = await lost(world)
    assert sorted(found) == names
    assert found["a"] == world.now()
    await world.worker("c")
    assert sorted(await lost(world)) == [name for name in names if name != "c"]


async def test_rules_with_open_alerts_are_listed(world: World):
    quiet, loud, over = [await made(world, name=name) for name in ("quiet", "loud", "over")]
    for stored in (loud, over):
        await settle(world, stored, "a", "b")
    world.clock.advance(MINUTE)
    await settle(world, over)
    assert await world.store.read(lambda: alerts.rules_with_open([quiet, loud, over])) == {(NAMESPACE, "loud")}
    assert await world.store.read(lambda: alerts.rules_with_open([])) == set()


async def silent(world: World, before: int) -> dict[str, int]:
    return await world.store.read(lambda: reads.silent_workers(NAMESPACE, before))


async def lost(world: World) -> dict[str, int]:
    return await world.store.read(lambda: reads.lost_workers(NAMESPACE))


async def troubled(world: World) -> set[UUID]:
    return set(await world.store.read(lambda: reads.troubled_triggers(NAMESPACE)))


async def test_triggers_that_cannot_be_decided_are_found(world: World):
    job = await world.job("etl")
    timer = await add_trigger(world, job, Once(at=world.now() + HOUR))
    assert await troubled(world) == set()
    await world.do("UPDATE timers SET trouble = 'no such calendar' WHERE trigger_id = $1", timer)
    assert await troubled(world) == {job.id}
    assert await world.store.read(lambda: reads.troubled_triggers(NAMESPACE + 1)) == {}
    await world.do("UPDATE jobs SET state = 'paused' WHERE id = $1", job.id)
    assert await troubled(world) == set()


async def test_late_fires_are_found_in_each_namespace(world: World):
    job = await world.job("etl")
    await add_trigger(world, job, Once(at=world.now() + HOUR))
    before = world.now() + HOUR + 1
    assert await world.store.read(lambda: reads.late_fires(NAMESPACE, before)) == {job.id: before - 1}
    assert await world.store.read(lambda: reads.late_fires(NAMESPACE + 1, before)) == {}


async def test_an_old_success_is_found_in_hours_and_days(world: World):
    job, now = await world.job("backup"), world.now()
    hour, day = begin_of(now - 30 * DAY, 3600), begin_of(now - 200 * DAY, 86_400)
    tallies = [((job.id, 3600, hour), JobTally(success=1)), ((job.id, 86_400, day), JobTally(success=1))]
    await world.store.write(lambda: statistics.put_jobs(world.env.new_id(), tallies))
    for within, is_known in ((29 * DAY, False), (31 * DAY, True), (199 * DAY, False), (201 * DAY, True)):
        found = await world.store.read(lambda within=within: reads.succeeded_within([job.id], within, now))
        assert found == ({job.id} if is_known else set()), within
