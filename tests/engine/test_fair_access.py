"""Fair access: namespaces that use a server at the same time do not starve each other."""

import asyncio
import itertools

import pytest

from horae.engine.settings import EngineSettings
from horae.engine.tenancy.fair_access import AT_ONCE, FairAccess
from horae.env import SECOND, VirtualClock, virtual_env
from horae.errors import OverQuota, TooOften
from horae.model.admission.rate import Rate

ALPHA, BETA = 7, 8
SETTINGS = EngineSettings(namespace_request_rate=Rate(5, SECOND, 5), namespace_submit_rate=Rate(100, SECOND, 100))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def access(clock: VirtualClock) -> FairAccess:
    return FairAccess(virtual_env(clock=clock), lambda namespace: 1.0, SETTINGS)


class Requests:
    """Requests of one namespace. Each runs from its turn until the test ends it."""

    def __init__(self, access: FairAccess, namespace: int) -> None:
        self.access, self.namespace = access, namespace
        self.begun: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: list[asyncio.Event] = []

    async def send(self, count: int) -> None:
        for _ in range(count):
            self.ends.append(asyncio.Event())
            self.tasks.append(asyncio.create_task(self._run(len(self.tasks))))
        await settle()

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await settle()

    async def _run(self, number: int) -> None:
        self.access.note_use(self.namespace)
        try:
            await self.access.enter(self.namespace)
            self.begun.append(number)
            await self.ends[number].wait()
        finally:
            self.access.leave(self.namespace)


async def settle() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


async def test_a_namespace_alone_has_no_limit_of_running_requests(access):
    alpha = Requests(access, ALPHA)
    await alpha.send(50)

    assert len(alpha.begun) == 50


async def test_a_competing_namespace_has_few_running_requests_and_an_ordered_queue(access):
    access.note_use(BETA)
    alpha, beta = Requests(access, ALPHA), Requests(access, BETA)
    await alpha.send(20)
    assert alpha.begun == list(range(AT_ONCE))

    await beta.send(1)
    assert beta.begun == [0]

    await alpha.end(2)
    assert alpha.begun == list(range(AT_ONCE + 1))


async def test_an_idle_namespace_begins_at_once_beside_a_flood(access):
    access.note_use(BETA)
    alpha = Requests(access, ALPHA)
    await alpha.send(20)
    access.note_use(BETA)

    entering = access.enter(BETA)

    with pytest.raises(StopIteration):  # it does not wait
        entering.send(None)


async def test_a_flood_of_requests_that_end_at_once_begins_one_request_in_each_turn_of_the_loop(access):
    access.note_use(BETA)
    begun = 0

    async def run() -> None:
        nonlocal begun
        access.note_use(ALPHA)
        access.note_use(BETA)
        await access.enter(ALPHA)
        begun += 1
        access.leave(ALPHA)

    tasks = [asyncio.create_task(run()) for _ in range(20)]
    counts = []
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        counts.append(begun)

    assert max(after - before for before, after in itertools.pairwise([0, *counts])) == 1


async def test_waiting_requests_begin_once_the_other_namespace_is_calm(access, clock):
    access.note_use(BETA)
    alpha = Requests(access, ALPHA)
    await alpha.send(20)
    clock.advance(2 * SECOND)

    await alpha.end(0)

    assert alpha.begun == list(range(20))


async def test_a_namespace_with_more_weight_has_more_running_requests(clock):
    access = FairAccess(virtual_env(clock=clock), lambda namespace: 2.0 if namespace == ALPHA else 0.1, SETTINGS)
    alpha, beta = Requests(access, ALPHA), Requests(access, BETA)
    access.note_use(BETA)
    await alpha.send(20)
    await beta.send(5)

    assert len(alpha.begun) == 2 * AT_ONCE
    assert len(beta.begun) == 1


@pytest.mark.parametrize("number", [AT_ONCE, AT_ONCE + 1])
async def test_a_request_cancelled_while_waiting_gives_up_its_turn(access, number):
    access.note_use(BETA)
    alpha = Requests(access, ALPHA)
    await alpha.send(AT_ONCE + 2)
    alpha.tasks[number].cancel()
    await settle()

    for done in range(AT_ONCE):
        await alpha.end(done)

    assert len(alpha.begun) == AT_ONCE + 1
    for end in alpha.ends:
        end.set()
    await asyncio.gather(*alpha.tasks, return_exceptions=True)
    later = Requests(access, ALPHA)
    access.note_use(BETA)
    await later.send(AT_ONCE + 1)
    assert len(later.begun) == AT_ONCE


async def test_a_request_cancelled_at_its_turn_passes_it_on(access):
    access.note_use(BETA)
    alpha = Requests(access, ALPHA)
    await alpha.send(AT_ONCE + 2)

    alpha.ends[0].set()
    for _ in range(20):
        if len(access._waiting[ALPHA]) == 2:
            await asyncio.sleep(0)
    assert AT_ONCE not in alpha.begun  # it has got its turn, but its task has not run yet
    alpha.tasks[AT_ONCE].cancel()
    await settle()

    assert alpha.begun[-1] == AT_ONCE + 1
    for end in alpha.ends:
        end.set()
    await asyncio.gather(*alpha.tasks, return_exceptions=True)
    assert ALPHA not in access._working


async def test_a_request_that_waits_gives_its_turn_back(access):
    access.note_use(BETA)
    alpha = Requests(access, ALPHA)
    release = asyncio.Event()

    async def wait() -> None:
        await access.enter(ALPHA)
        async with access.without_turn(ALPHA):
            await release.wait()
        access.leave(ALPHA)

    waits = [asyncio.create_task(wait()) for _ in range(AT_ONCE)]
    await settle()
    await alpha.send(1)
    assert alpha.begun == [0]

    release.set()
    await alpha.end(0)
    await asyncio.gather(*waits)


async def test_rates_apply_only_while_namespaces_compete(access, clock):
    for _ in range(100):
        access.note_use(ALPHA)
        access.count_request(ALPHA)
    access.note_use(BETA)
    for _ in range(5):
        access.count_request(ALPHA)

    with pytest.raises(TooOften) as refused:
        access.count_request(ALPHA)

    assert refused.value.fields["retryAfter"] == 1
    access.count_request(BETA)
    clock.advance(SECOND // 5)
    access.count_request(ALPHA)


async def test_a_large_submission_is_admitted_and_delays_the_next(access, clock):
    access.note_use(BETA)
    access.count_submissions(ALPHA, 250)

    with pytest.raises(OverQuota) as refused:
        access.count_submissions(ALPHA, 1)

    assert refused.value.fields == {"retryAfter": 2, "quota": "submissionsPerSecond"}
    access.count_submissions(BETA, 1)
    clock.advance(2 * SECOND)
    access.note_use(BETA)
    access.count_submissions(ALPHA, 1)
