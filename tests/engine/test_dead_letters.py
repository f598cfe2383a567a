"""Dead letters, on every store."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import BadInput, Conflict, NotFound, StoreUnavailable
from horae.features.dead_letters.engine import dead_letters
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.features.dead_letters.store import reads as dead_letter_reads
from horae.model.base.ids import execution_id
from horae.model.base.instant import parse_instant
from horae.model.definitions.retry import RetryPolicy
from horae.model.fleet.protocol import Failure
from tests.engine.objects import executions_of, jobs_of
from tests.store_contract.world import NAMESPACE, TestJob, World, failed, rank, success


class Submits:
    """The real submitter, with a way to fail after it has committed."""

    def __init__(self, world: World) -> None:
        node = ServerNode(world.env, world.store)
        self.submitter, self.directory = node.submitter, node.base.directory
        self.breaks = False
        self.refuses: Exception | None = None
        self.then: Callable[[Any], Awaitable[None]] | None = None  # what happens before the caller goes on

    async def __call__(self, namespace: int, requests: Sequence[Any], **more: Any) -> Any:
        if self.refuses is not None:
            raise self.refuses
        done = await self.submitter.submit(namespace, requests, **more)
        if self.then is not None:
            await self.then(done)
        if self.breaks:
            raise StoreUnavailable("The store went away.")
        return done


@pytest.fixture
async def submits(world: World):
    made = Submits(world)
    yield made
    await made.submitter.close()


@pytest.fixture
def letters(world: World, submits: Submits) -> DeadLetters:
    return DeadLetters(world.env, world.store, submits, executions_of(world.store))


async def fail(world: World, job: TestJob, n: int = 1, type: str = "ValueError") -> list[UUID]:
    """Return executions of a job that failed for good, oldest first."""
    parcel = await world.parcel(job, n)
    worker = await world.worker()
    (slice,) = [s for s in await worker.claim(n) if s.parcel == parcel]
    await worker.report(failed(slice, error=Failure(type=type, message=f"no {type}")), policies=job.policy)
    world.clock.advance(SECOND)
    return [execution_id(parcel, i) for i in range(n)]


async def job(world: World, name: str = "job", **more: Any) -> TestJob:
    return await world.job(name, retry=RetryPolicy(retries=0), durable=False, **more)


async def ids(letters: DeadLetters, **filters: Any) -> list[UUID]:
    return [letter.execution.execution_id for letter in (await letters.list(NAMESPACE, **filters)).items]


async def test_only_failed_executions_are_dead_letters(world, letters):
    (dead,) = await fail(world, await job(world))
    (receipt,) = await world.submit(await job(world, "other"))
    letter = await letters.get(NAMESPACE, dead)
    assert (letter.state, letter.execution.status, letter.execution.error.type) == ("open", "failed", "ValueError")
    assert await ids(letters) == [dead]
    with pytest.raises(NotFound, match="queued, not failed"):
        await letters.get(NAMESPACE, receipt.execution_id)
    with pytest.raises(NotFound):
        await letters.get(NAMESPACE, "nonsense")
    with pytest.raises(NotFound):
        await letters.get(2, dead)


async def test_a_retry_is_a_new_execution_and_happens_once(world, letters):
    made = await job(world)
    (dead,) = await fail(world, made)
    await world.do("UPDATE jobs SET updated_at = updated_at")
    letter = await letters.retry(NAMESPACE, dead, caller="ann")
    assert letter.state == "retried"
    fresh = await executions_of(world.store).get(NAMESPACE, letter.retried_as)
    assert (fresh.retry_of, fresh.status, fresh.origin, fresh.attempt) == (dead, "queued", "retry", 0)
    assert (msgspec.json.decode(fresh.params), fresh.key) == ({"i": 0}, None)
    again = await letters.retry(NAMESPACE, str(dead))
    assert again.retried_as == letter.retried_as
    assert len(await world.on("queued")) == 1
    assert await ids(letters) == []
    assert await ids(letters, state="retried") == await ids(letters, state="all") == [dead]
    with pytest.raises(Conflict, match="was already retried"):
        await letters.discard(NAMESPACE, dead)


@pytest.mark.parametrize("act", ["retry_each", "discard_each"])
async def test_a_refused_id_leaves_all_given_letters_unchanged(world, letters, act):
    first, second = await fail(world, await job(world), 2)
    (receipt,) = await world.submit(await job(world, "other"))
    for wrong in (receipt.execution_id, "nonsense"):
        with pytest.raises(NotFound):
            await getattr(letters, act)(NAMESPACE, [first, wrong, second])

    assert await ids(letters) == [second, first]
    assert len(await getattr(letters, act)(NAMESPACE, [first, second])) == 2
    assert await ids(letters) == []


async def test_a_retried_letter_prevents_the_discard_of_all_given_letters(world, letters):
    first, second = await fail(world, await job(world), 2)
    await letters.retry(NAMESPACE, second)
    with pytest.raises(Conflict, match="was already retried"):
        await letters.discard_each(NAMESPACE, [first, second])

    assert await ids(letters) == [first]


async def test_a_deleted_job_prevents_the_retry_of_all_given_letters(world, letters):
    gone = await job(world, "gone")
    (first,), (second,) = await fail(world, await job(world)), await fail(world, gone)
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", gone.id)
    with pytest.raises(Conflict, match="is deleted"):
        await letters.retry_each(NAMESPACE, [first, second])

    assert await ids(letters) == [second, first]


async def test_a_retry_that_failed_before_its_mark_is_not_doubled(world, letters, submits):
    (dead,) = await fail(world, await job(world))
    submits.breaks = True
    with pytest.raises(StoreUnavailable):
        await letters.retry(NAMESPACE, dead)
    submits.breaks = False
    (queued,) = await world.on("queued")
    world.clock.advance(48 * 3600 * SECOND)
    letter = await letters.retry(NAMESPACE, dead)
    assert letter.retried_as == execution_id(queued.parcel, 0)
    assert len(await world.on("queued")) == 1


async def test_a_retry_runs_the_present_version(world, letters, submits):
    (other,) = await fail(world, await job(world, "gone"))
    (dead,) = await fail(world, await job(world))
    jobs = jobs_of(world.store, lambda hint: submits.directory.forget(hint.jobs), rank=rank)
    await jobs.edit(NAMESPACE, "job", {"timeout": "5m"})
    letter = await letters.retry(NAMESPACE, dead)
    assert (await executions_of(world.store).get(NAMESPACE, letter.retried_as)).job_version == 2
    await jobs.delete(NAMESPACE, "gone")
    with pytest.raises(Conflict, match="horae jobs restore"):
        await letters.retry(NAMESPACE, other)


async def test_a_discarded_letter_is_not_listed_but_can_be_retried(world, letters):
    (dead,) = await fail(world, await job(world))
    assert (await letters.discard(NAMESPACE, dead)).state == "discarded"
    assert (await letters.discard(NAMESPACE, dead)).state == "discarded"
    assert await ids(letters) == []
    assert await ids(letters, state="discarded") == [dead]
    assert (await letters.retry(NAMESPACE, dead)).state == "retried"


async def test_lists_are_filtered_and_paged(world, letters):
    one, two = await job(world, "one"), await job(world, "two")
    a = await fail(world, one, 3)
    middle = world.now()
    b = await fail(world, two, 2, "KeyError")
    c = await fail(world, one, 1, "KeyError")
    assert await ids(letters) == [*c, *reversed(b), *reversed(a)]
    assert await ids(letters, job="one") == [*c, *reversed(a)]
    assert await ids(letters, error_type="KeyError") == [*c, *reversed(b)]
    assert await ids(letters, error_type="KeyError", job="two") == list(reversed(b))
    assert await ids(letters, until=middle) == list(reversed(a))
    assert await ids(letters, since=middle) == [*c, *reversed(b)]
    await letters.discard(NAMESPACE, a[1])
    seen, cursor = [], None
    while not seen or cursor is not None:
        page = await letters.list(NAMESPACE, limit=2, cursor=cursor)
        seen += [letter.execution.execution_id for letter in page.items]
        cursor = page.next_cursor
    assert seen == [*c, *reversed(b), a[2], a[0]]
    for bad in ({"state": "new"}, {"limit": 0}, {"cursor": "?"}, {"since": "x"}):
        with pytest.raises(BadInput):
            await letters.list(NAMESPACE, **bad)


async def test_groups_count_by_job_and_error(world, letters, monkeypatch):
    one, two = await job(world, "one"), await job(world, "two")
    a = await fail(world, one, 3)
    b = await fail(world, two, 2, 'Odd"Error')
    await fail(world, one, 1, "KeyError")
    await letters.discard(NAMESPACE, a[0])
    groups = await letters.groups(NAMESPACE)
    told = {(g.job_name, g.error_type): (g.count, g.newest_id) for g in groups.items}
    assert told["one", "ValueError"] == (2, a[2])
    assert told["two", 'Odd"Error'] == (2, b[1])
    assert groups.complete
    assert [g.count for g in groups.items] == [2, 2, 1]
    assert {g.error_message for g in groups.items} >= {"no ValueError", "no KeyError"}
    monkeypatch.setattr(dead_letters, "MOST_GROUPS", 2)
    some = await letters.groups(NAMESPACE)
    assert (some.items, some.complete) == (groups.items[:2], False)


async def test_groups_have_their_first_and_last_time_and_their_course(world, letters):
    made, other = await job(world, "one"), await job(world, "two")
    begin = world.now()
    first = await fail(world, made, 1)
    world.clock.advance(23 * 3600 * SECOND)
    last = await fail(world, made, 2)
    await fail(world, other, 1)
    world.clock.advance(1800 * SECOND)

    groups = await letters.groups(NAMESPACE, since=begin)

    one, two = groups.items
    assert (one.count, one.newest_id, two.count) == (3, last[1], 1)
    assert parse_instant(one.oldest_at) == begin
    assert parse_instant(one.newest_at) - begin == (23 * 3600 + 1) * SECOND
    assert (parse_instant(groups.from_), parse_instant(groups.to)) == (begin, world.now())
    assert one.trend == [1, *[0] * 22, 2]
    await letters.discard(NAMESPACE, first[0])
    (discarded,) = (await letters.groups(NAMESPACE, state="discarded")).items
    assert (discarded.count, discarded.newest_id) == (1, first[0])
    assert (await letters.groups(NAMESPACE, state="all")).items[0].count == 3
    assert (await letters.groups(NAMESPACE, queue="nowhere")).items == []
    assert await letters.count(NAMESPACE, await letters.read(NAMESPACE, {"queue": "default"})) == 3


async def test_groups_count_a_limited_number_of_letters(world, letters, monkeypatch):
    monkeypatch.setattr(dead_letter_reads, "PAGE", 2)
    monkeypatch.setattr(dead_letters, "MOST_GROUPED", 4)
    made = await job(world)
    for _ in range(6):
        await fail(world, made, 1)

    groups = await letters.groups(NAMESPACE, error_type="Nothing")
    assert (groups.items, groups.complete) == ([], False)
    (one,) = (await letters.groups(NAMESPACE)).items
    assert one.count == 4


async def test_bulk_retries_matching_letters_and_reports_skipped_ones(world, letters, submits):
    one, two = await job(world, "one"), await job(world, "two")
    a = await fail(world, one, 4)
    b = await fail(world, two, 2)
    await letters.discard(NAMESPACE, a[0])
    jobs = jobs_of(world.store, lambda hint: submits.directory.forget(hint.jobs), rank=rank)
    await jobs.delete(NAMESPACE, "two")
    first = await letters.retry_many(NAMESPACE, job="one", limit=2)
    assert (first.matched, first.done, first.more) == (2, 2, True)
    rest = await letters.retry_many(NAMESPACE)
    assert (rest.matched, rest.done, rest.skipped, rest.more) == (3, 1, 2, False)
    assert rest.notes
    assert await ids(letters) == list(reversed(b))
    assert sum(q.hi - q.lo for q in await world.on("queued")) == 3
    assert len({*first.execution_ids, *rest.execution_ids}) == 3


async def test_bulk_continues_at_its_cursor_without_later_failures(world, letters):
    made = await job(world)
    await fail(world, made, 5)
    first = await letters.discard_many(NAMESPACE, limit=2)
    meanwhile = await fail(world, made, 1)
    rest = await letters.discard_many(NAMESPACE, cursor=first.next_cursor)
    assert (first.done, first.more, rest.done, rest.more, rest.next_cursor) == (2, True, 3, False, None)
    assert await ids(letters) == meanwhile


async def test_bulk_continues_after_skipped_letters(world, letters, submits):
    await fail(world, await job(world), 4)
    jobs = jobs_of(world.store, lambda hint: submits.directory.forget(hint.jobs), rank=rank)
    await jobs.delete(NAMESPACE, "job")
    first = await letters.retry_many(NAMESPACE, limit=3)
    rest = await letters.retry_many(NAMESPACE, limit=3, cursor=first.next_cursor)
    assert (first.skipped, first.more, rest.skipped, rest.more) == (3, True, 1, False)


async def test_a_refused_letter_does_not_prevent_the_retry_of_others(world, letters, submits):
    made = await job(world)
    dead = await fail(world, made, 3)
    schema = {"type": "object", "properties": {"i": {"enum": [0, 2]}}}
    jobs = jobs_of(world.store, lambda hint: submits.directory.forget(hint.jobs), rank=rank)
    await jobs.edit(NAMESPACE, "job", {"schema": schema})
    bulk = await letters.retry_many(NAMESPACE)
    assert (bulk.done, bulk.skipped) == (2, 1)
    assert "params.i" in bulk.notes[0]
    assert await ids(letters) == [dead[1]]


async def test_bulk_discards_matching_letters(world, letters):
    made = await job(world)
    await fail(world, made, 3)
    await fail(world, made, 2, "KeyError")
    bulk = await letters.discard_many(NAMESPACE, error_type="ValueError")
    assert (bulk.matched, bulk.done, bulk.more) == (3, 3, False)
    assert len(await ids(letters)) == 2


async def test_a_failed_retry_is_a_new_letter(world, letters):
    made = await job(world)
    (dead,) = await fail(world, made)
    first = await letters.retry(NAMESPACE, dead)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.report(failed(slice), policies=made.policy)
    assert await ids(letters) == [first.retried_as]
    second = await letters.retry(NAMESPACE, first.retried_as)
    (slice,) = await worker.claim(1)
    await worker.report(success(slice))
    assert (await executions_of(world.store).get(NAMESPACE, second.retried_as)).retry_of == first.retried_as


async def test_letters_are_found_by_their_text_and_their_fields(world: World, letters: DeadLetters):
    plain, other = await world.job("plain"), await world.job("other", queue="slow")
    (bad,), (deadlock,) = await fail(world, plain, type="ValueError"), await fail(world, other, type="Deadlock")
    world.clock.advance(3600 * SECOND)
    (late,) = await fail(world, plain, type="KeyError")

    async def found(**which: Any) -> list[UUID]:
        return [one.execution.execution_id for one in (await letters.list(NAMESPACE, **which)).items]

    assert await found() == [late, deadlock, bad]
    assert await found(queue="slow") == [deadlock]
    assert await found(text="DEADL") == [deadlock]
    assert await found(text='no "x"') == []
    assert await found(reason="retries") == [late, deadlock, bad]
    assert await found(reason="poison") == []
    assert await found(older_than="30m") == [deadlock, bad]
    assert await found(older_than="30m", error_type="ValueError", queue="default") == [bad]
    assert [group.count for group in (await letters.groups(NAMESPACE, older_than="30m", queue="slow")).items] == [1]
    with pytest.raises(BadInput):
        await letters.list(NAMESPACE, older_than="whenever")


async def test_a_letter_is_retried_with_edited_params_and_both_executions_are_linked(
    world: World, letters: DeadLetters
):
    job = await world.job()
    (letter,) = await fail(world, job)
    view = await letters.retry(NAMESPACE, letter, params={"i": None, "day": {"of": "rest"}})

    executions = executions_of(world.store)
    again = await executions.get(NAMESPACE, view.retried_as)
    assert msgspec.json.decode(again.params) == {"day": {"of": "rest"}}
    assert again.retry_of == letter
    assert (await executions.get(NAMESPACE, letter)).retried_as == again.execution_id
    assert again.retried_as is None
